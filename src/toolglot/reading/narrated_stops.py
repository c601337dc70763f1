"""Detects narrated stops: answers that end by announcing an action of the model's own, without making the call.

Strategy. A needless extra request costs more than a missed announcement, so every doubt means no. Only the last sentence
of the last line counts. Before it is read, code and quoted text are replaced by a placeholder, and an end inside code, a
list, a block quote or a draft of a letter is no announcement. The sentence must hold a phrase of ``narrated_phrases``: an
opening in the first person ("I'll now", "let me") and a verb of acting, at the beginning of a clause. Verbs of explaining,
waiting or remembering are not listed. Words before the phrase (conditions, requests to the user) and behind it (promises
for later, an explanation after a colon) can still refuse it. Whether the conversation wants action is decided in the same
way, from the last message. Only the last characters of a text are read, so that the work is constant.
"""

from __future__ import annotations

import re
import unicodedata

from toolglot.core.conversation import Message
from toolglot.reading.narrated_phrases import LANGUAGES, Phrases
from toolglot.reading.request_phrases import AGREEING, FORBIDDING, POLITE, REQUESTS, Requests

TAIL_SIZE = 600
"""How many characters at the end of an answer can hold an announcement."""

_CODE = "□"
"""Replaces code and quoted text. It is a symbol, so it ends no word and is stripped at the end of a sentence."""

_FENCE = re.compile(r"^[ \t>]*(?:```+|~~~+)[ \t]*(\S*)", re.MULTILINE)
_OPEN_FENCE = re.compile(r"\n[ \t]*(?:```+|~~~+)[ \t]*\w*\s*\Z")
_LIST_MARK = re.compile(r"\n[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]*\Z")
_ITEM = re.compile(r"[ \t]*(?:[-+•‣▪>|]|\*[ \t]|\*{0,2}\(?\d{1,2}[.)]|\[[ xX]\])")
"""The beginning of a list item, a block quote or a row of a table."""
_SPANS = re.compile(
    r"``[^`\n]{1,200}``|`[^`\n]{1,200}`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»"
    r"|「[^」\n]{1,300}」|『[^』\n]{1,300}』|\]\([^)\n]{1,300}\)"
)
_OPEN_QUOTE = re.compile(r"[\"“„«「『]")
_EMPHASIS = re.compile(r"\*+|(?<!\w)__?|__?(?!\w)|^[ \t]*#+[ \t]*", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?:[.!?…]|\.{2,}|[\U0001f300-\U0001faff\u2600-\u27bf]\ufe0f?)[)\]]?\s+|[。！？।؟]\s*")
_EXPLAINED = re.compile(r"(?::\s|：)\s*\w")
"""Text behind a colon: what was announced has been written."""
_QUESTION = re.compile(r"[?？؟]")
_DRAFT = re.compile(
    r"^\W*(?:subject|betreff|asunto|assunto|objet|тема|件名|主题|主旨|الموضوع|विषय|제목)\s*[:：]"
    r"|^(?:dear|hi|hello|hey|hallo|liebe[rs]?|sehr geehrte[rs]?|hola|querid[oa]|estimad[oa]|olá|oi|prezad[oa]|bonjour|ch[eè]re?)"
    r" [^\n.!?]{1,40},[ \t]*$",
    re.MULTILINE,
)
"""Lines that begin a letter or an e-mail."""
_PLAN = re.compile(
    r"(?:\b(?:plans?|roadmap|proposal|next steps|action items|schritte|vorgehen|vorschlag|prochaines étapes|próximos pasos"
    r"|próximos passos|plano|план|следующие шаги)\b|计划|步骤|方案|手順|計画|ステップ|進め方|خطة|خطتي|الخطوات|योजना|चरण|계획|단계)"
    r"[^\n.!?。]{0,40}[:：]\s"
)
"""A heading of a plan. Its steps announce nothing."""

_DROPPED = dict.fromkeys([*range(0x064B, 0x0653), 0x0640, 0x093C, 0x200B, 0x200C, 0x200D, 0xFE0F])
"""Marks that writers leave out or add: Arabic vowels, the dot of Hindi letters, invisible joiners."""
_FOLDED = str.maketrans(
    {"’": "'", "ʼ": "'", "ё": "е", "ँ": "ं", "\u00a0": " ", "\u202f": " ", **{"أ": "ا", "إ": "ا", "آ": "ا"}}
)


def announces_action(text: str) -> bool:
    """Whether an answer ends by announcing an action of its own.

    Parameters: ``text`` is the whole text of the answer.
    Returns: True if the last sentence states what the model does next.
    """
    sentence = _find_last_sentence(text)
    return bool(sentence) and any(_is_announced(language, sentence) for language in _LANGUAGES)


def wants_action(messages: tuple[Message, ...]) -> bool:
    """Whether a conversation still wants action.

    Parameters: ``messages`` are the messages of the conversation, without the answer.
    Returns: True behind a tool result and if the last message of the user asks for something to be done; False for
    questions, for plans that are asked for, and in doubt.
    """
    last = messages[-1] if messages else None
    if last is None or last.role != "user":
        return last is not None and last.role == "tool"
    text = _read_request(last.text)
    if _FORBIDDING.search(text) is not None:
        return False
    if _AGREEING.fullmatch(text) is not None:
        return _asks_user(messages[:-1])
    return any(map(_is_request, _REQUEST_END.findall(text)))


class _Language:
    """The compiled phrases of one language."""

    __slots__ = ("announcing", "before", "behind", "waiting")

    def __init__(self, phrases: Phrases) -> None:
        begin = rf"(?:^|[,;:،؛、，；：–—(-]\s*|(?<!\w)(?:{phrases.joins})[, ]\s*)(?:{phrases.leads}){{0,4}}"
        self.announcing = re.compile(_fold(rf"{begin}(?P<phrase>{phrases.announcing})"))
        self.before = re.compile(_fold(phrases.before))
        self.behind = re.compile(_fold(phrases.behind))
        self.waiting = re.compile(_fold(phrases.waiting))


def _fold(text: str) -> str:
    """A text with one spelling for letters that are written in several ways."""
    return unicodedata.normalize("NFC", text).translate(_DROPPED).translate(_FOLDED)


_LANGUAGES = tuple(map(_Language, LANGUAGES))


def _is_announced(language: _Language, sentence: str) -> bool:
    found = language.announcing.search(sentence)
    if found is None or language.before.search(sentence, 0, found.start("phrase")) is not None:
        return False
    rest = sentence[found.start("phrase") :]
    return _EXPLAINED.search(rest) is None and language.behind.search(rest) is None


def _find_last_sentence(text: str) -> str:
    """The last sentence of an answer, folded and without marks at its end, or an empty string if it cannot announce."""
    tail = text[-TAIL_SIZE:].rstrip()
    tail = _LIST_MARK.sub("", _OPEN_FENCE.sub("", f"\n{tail}")).strip()
    if _ends_in_code(tail, complete=len(text) <= TAIL_SIZE):
        return ""
    line = tail[tail.rfind("\n") + 1 :]
    plain = _fold(tail.lower())
    if _ITEM.match(line) is not None or _DRAFT.search(plain) is not None or _PLAN.search(plain) is not None:
        return ""
    line = _EMPHASIS.sub("", _SPANS.sub(_CODE, _fold(line.lower())))
    if _OPEN_QUOTE.search(line) is not None:
        return ""
    for sentence in reversed(_SENTENCE_END.split(line)):
        words, marks = _split_marks(sentence)
        if _QUESTION.search(marks) is not None:
            return ""
        if words and not any(language.waiting.fullmatch(words) for language in _LANGUAGES):
            return words + ("..." if "…" in marks or "..." in marks else "")
    return ""


def _ends_in_code(tail: str, complete: bool) -> bool:
    """Whether a text ends with code or inside it. A cut text may begin inside code."""
    inside = False
    last = None
    for last in _FENCE.finditer(tail):
        inside = True if last[1] else not inside
    if last is None:
        return False
    if "\n" not in tail[last.start() :]:
        return True
    return inside and (complete or bool(last[1]))


def _split_marks(sentence: str) -> tuple[str, str]:
    """A sentence without punctuation, symbols and white space around it, and what stood behind it."""
    end = len(sentence)
    while end and unicodedata.category(sentence[end - 1])[0] in "PSZC":
        end -= 1
    return sentence[:end].lstrip(" \t-–—>#(.,:;!¡¿…" + _CODE), sentence[end:]


_REQUEST_SIZE = 2000
"""How many characters at the beginning and at the end of a user's message are read."""
_ADDED = re.compile(
    r"<(system-reminder|environment_details|environment_context|user_info|context|attached_files)\b.*?(?:</\1>|\Z)"
    r"|```.*?(?:```|\Z)|</?(?:task|user_message|feedback|user_query|query|answer)>",
    re.DOTALL,
)
"""What clients add to a message, and code."""
_REQUEST_END = re.compile(r"[^.!?…。！？।؟\n]+(?:\.(?=\w)[^.!?…。！？।؟\n]+)*[?？؟]?")
_CLAUSE_END = re.compile(r"[,;:，；：،؛、]\s*|\s(?:and|then|und|dann|y|e|et|puis|и|ثم)\s")
_POLITE = re.compile(_fold(POLITE))
_FORBIDDING = re.compile(_fold(FORBIDDING))
_AGREEING = re.compile(rf"(?:{_fold(AGREEING)}[ ,.!。！、，]*){{1,3}}")
_REQUESTS = tuple((re.compile(_fold(item.asking)), re.compile(_fold(item.declining))) for item in REQUESTS)


def _read_request(text: str) -> str:
    """The beginning and the end of a user's message, folded, without code and what clients add."""
    if len(text) > 2 * _REQUEST_SIZE:
        text = f"{text[:_REQUEST_SIZE]}\n{text[-_REQUEST_SIZE:]}"
    return _SPANS.sub(_CODE, _fold(_ADDED.sub("\n", text).lower())).strip()


def _is_request(sentence: str) -> bool:
    sentence = sentence.strip(" \t¿¡")
    if sentence.endswith(("?", "？", "؟")) and _POLITE.search(sentence) is None:
        return False
    words = sentence.rstrip(" ?？؟")
    clauses = (words, *_CLAUSE_END.split(words))
    return any(
        declining.search(words) is None and any(asking.match(clause) is not None for clause in clauses)
        for asking, declining in _REQUESTS
    )


def _asks_user(messages: tuple[Message, ...]) -> bool:
    """Whether the last message is a question of the model."""
    return (
        bool(messages) and messages[-1].role == "assistant" and "?" in _fold(messages[-1].text[-40:]).translate(_ASKED)
    )


_ASKED = str.maketrans({"？": "?", "؟": "?"})
