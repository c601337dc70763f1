"""Detects narrated stops: answers that end by announcing an action of the model's own, without making the call.

Strategy. A needless extra request costs more than a missed announcement, so every doubt means no. Only the last
sentence of the last line counts. Code and quoted text are replaced by a placeholder first; an end inside code, a
list, a block quote, a plan or a draft of a letter is no announcement. The sentence must hold a phrase of its
language: an opening in the first person ("I'll now", "let me") and a verb of acting, at the beginning of a clause: a
listed verb, or any verb whose object is a thing that tools work on or that is done at once or again. Verbs of saying,
thinking, waiting and watching are a closed class that is excluded. Words before the phrase (conditions, requests to
the user) and behind it (promises for later, an explanation after a colon) can still refuse it, and so does a question
to the user in the sentence before it. Whether the conversation wants action is decided in the same way, from the last
message. Only the ends of long texts are read, so that the work is constant.
"""

from __future__ import annotations

import re
import unicodedata

from toolglot.core.conversation import Message
from toolglot.reading.phrases import (
    arabic,
    bengali,
    chinese,
    english,
    french,
    german,
    hindi,
    indonesian,
    italian,
    japanese,
    korean,
    polish,
    portuguese,
    russian,
    spanish,
    turkish,
    vietnamese,
)
from toolglot.reading.phrases.record import Phrases

TAIL_SIZE = 600
"""How many characters at the end of an answer can hold an announcement."""

REQUEST_SIZE = 2000
"""How many characters at the beginning and at the end of a user's message can hold a request."""

_STEPS = 2
"""How many announced steps before the last one make a plan."""

_CODE = "□"
"""Replaces code and quoted text. It is a symbol, so it ends no word."""

_FENCE = re.compile(r"^[ \t>]*(?:```+|~~~+)[ \t]*(\S*)", re.MULTILINE)
_OPEN_FENCE = re.compile(r"\n[ \t]*(?:```+|~~~+)[ \t]*\w*\s*\Z")
_INDENTED = re.compile(r"\n[ \t]*\n(?: {4}|\t)[^\n]*\Z")
_LIST_MARK = re.compile(r"\n[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]*\Z")
_ITEM = re.compile(r"[ \t]*(?:[-+•‣▪>|]|\*[ \t]|\*{0,2}\(?\d{1,2}[.)]|\[[ xX]\])")
"""The beginning of a list item, a block quote or a row of a table."""
_SPANS = re.compile(
    r"``[^`\n]{1,200}``|`[^`\n]{1,200}`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»"
    r"|「[^」\n]{1,300}」|『[^』\n]{1,300}』|\]\([^)\n]{1,300}\)"
)
_OPEN_QUOTE = re.compile(r"[\"“„«「『]")
_MARKUP = re.compile(r"[*_#]")
_EMPHASIS = re.compile(r"\*+|(?<!\w)__?|__?(?!\w)|^[ \t]*#+[ \t]*", re.MULTILINE)
_EMOJI = r"[\U0001f300-\U0001faff\u2600-\u27bf]"
_SENTENCE_END = re.compile(rf"[)\]\s](?:(?<=[.!?…][)\]])\s+|(?<=[.!?…]\s)\s*|(?<={_EMOJI}\s)\s*|(?<=\n)\n*)")
"""It begins with a set of characters, so that all others are skipped fast."""
_ANY_SENTENCE_END = re.compile(rf"(?<=[.!?…])[)\]]?\s+|(?<=[。！？।؟])\s*(?=\S)|(?<={_EMOJI})\s+|\n+")
_OTHER_FULL_STOPS = re.compile("[。！？।؟]")
"""Signs that may end a sentence without a space behind them."""
_CLAUSE_SIGNS = ",;:،؛，；：–—(-"
"""Signs behind which a clause may begin."""
_LAST_CLAUSE = re.compile(r"\s?[,;،，、–—](?: please,?)?\s*([^,;،，、–—]{2,60})\Z")
"""The clause behind the last comma, which may ask for patience."""
_EXPLAINED = re.compile(r"(?<!\d)(?::\s|：)\s*\w")
"""Text behind a colon: what was announced has been written."""
_NAMED = re.compile(rf"\s*[:：]\s*{_CODE}\W*\Z")
"""Code behind a colon at the end, which names what the sentence is about."""
_QUESTION = re.compile(r"[?？؟]")
_GOES_ON = re.compile(r"…|\.\.\.|[:：]")
"""Marks behind a sentence that goes on. The phrases know them as three dots."""
_QUESTION_MARKS = ("?", "？", "؟")
_HEADING = re.compile(
    r"(?![^:：]*(?:\b(?:next|now|first|then|step|on it|let's|let me|siguiente|paso|ahora|vamos|manos a|próximo|passo"
    r"|agora|mãos à"
    r"|étape|suivante?|maintenant|m'en occupe|passons|c'est parti|allons-y|schritt|nun|jetzt|weiter|prossimo|ora"
    r"|adesso|шаг|теперь"
    r"|далее|за дело"
    r"|langkah|sekarang|krok|teraz|adım|şimdi|bước|bây giờ|الخطوة|نبدا|الان|कदम|चरण|शुरू|अब|ধাপ|এখন|শুরু)(?!\w)"
    r"|下一步|接下来|现在|次|ステップ|第.步|다음|이제))[^:：]*(?::\s|：)\s*"
)
"""Words before a colon that do not lead to the next step, as a label, a title or a name in a dialogue."""
_WHY = re.compile(
    r"\b(?:why|how come|what(?:'s| is) (?:going on|wrong|happening)|warum|wieso|weshalb|pourquoi|por ?qu[eé]"
    r"|perché|почему"
    r"|отчего|mengapa|kenapa|dlaczego|czemu|neden|niye|niçin|tại sao|vì sao)\b"
    r"|为什么|为何|怎么回事|なぜ|どうして|왜|لماذا|क्यों|কেন"
)
"""Questions for a cause."""
_ASCII_MARK = re.compile(r"(?<=[\u3040-\u30ff\u4e00-\u9fff])[,;:!?]")
_WIDE_MARKS = {",": "，", ";": "；", ":": "：", "!": "！", "?": "？"}
"""Punctuation behind Chinese and Japanese characters, which some writers take from ASCII."""
_DRAFT = re.compile(
    r",[ \t]*\n[^\n]*\Z|"
    r"^\W*(?:subject|betreff|asunto|assunto|objet|тема|件名|主题|主旨|الموضوع|विषय|제목)\s*[:：]"
    r"|^(?:dear|hi|hello|hey|hallo|liebe[rs]?|sehr geehrte[rs]?|hola|querid[oa]"
    r"|estimad[oa]|olá|oi|prezad[oa]|bonjour|ch[eè]re?)"
    r" [^\n.!?]{1,40},[ \t]*$",
    re.MULTILINE,
)
"""Lines that begin a letter, and a last line that goes on behind a comma, as in a letter or a poem."""
_PLAN = re.compile(
    r"(?:\b(?:plans?|roadmap|proposal|approach(?: it| this)?|next steps|action items|schritte|vorgehen|vorschlag"
    r"|prochaines étapes|próximos pasos|próximos passos|plano|план|следующие шаги)\b"
    r"|计划|步骤|方案|手順|計画|ステップ(?!\s?\d)|進め方|خطة|خطتي|الخطوات|योजना|चरण(?!\s?\d)|계획|단계(?!\s?\d))"
    r"(?:[^\n.!?。]{0,40}[:：]\s|[ \t]*\n)"
)
"""A heading of a plan. Its steps announce nothing."""

_CITED = re.compile(
    r"(?:\b(?:sentence|phrase|wording|greeting|caption|label|tweet|tuit|tuíte|твит|post|auto-?reply|автоответ"
    r"|transcript|dialogue|satz|formulierung|frase|phrase"
    r"|reply|message|draft|e-?mail|response|comment|translations?|translated|means|quote"
    r"|(?<!gute )(?<!schlechte )nachricht|entwurf|antwort"
    r"|übersetzung|kommentar|mensaje|borrador|respuesta|traducción|mensagem|rascunho|resposta|tradução|brouillon"
    r"|réponse"
    r"|traduction|сообщение|черновик|ответ|перевод|письмо)\b|消息|草稿|回复|翻译|译文|推文|自动回复|邮件"
    r"|メッセージ|下書き|返信|翻訳|ツイート|英語では|日本語では"
    r"|メール|رسالة|مسودة|تغريدة|رد الي"
    r"|ترجمة|संदेश|ट्वीट|मसौदा|अनुवाद|메시지|초안|답장|번역)[^\n:：]{0,40}[:：]\s*[^\s:：][^\n]*\Z"
    r"|^\W*(?:user|agent|assistant|support|bot|customer|model|human|operator|kunde|nutzer|usuario|usuário|client"
    r"|пользователь|用户|助手|客服|ユーザー)[:：][^\n]*\Z"
    r"|(?:\b(?:(?:is|are|was)(?: now)?|says|reads|lautet|ist|heißt|sagt|est|dit|es|dice|é|diz|è|гласит"
    r"|звучит)|是|为|写道|说)"
    r"[ \t]*[:：]\s*[^\s:：][^\n.!?。！？]*[.!?。！？…]?\s*\Z",
    re.MULTILINE,
)
"""The last line is a text for others, a translation or a turn of a dialogue."""

_ADDED = re.compile(
    r"<(system-reminder|environment_details|environment_context|user_info|context|attached_files)\b.*?(?:</\1>|\Z)"
    r"|```.*?(?:```|\Z)|</?(?:task|user_message|feedback|user_query|query|answer)>",
    re.DOTALL,
)
"""What clients add to a message, and code."""
_REQUEST = re.compile(r"[^.!?…。！？।؟\n]+(?:\.(?=\w)[^.!?…。！？।؟\n]+)*[?？؟]?")
_CLAUSE_END = re.compile(r"[,;:，；：،؛、]\s*|\s(?:and|then|und|dann|y|e|et|puis|и|ثم)\s|\s(?=و\w)")

_DROPPED = dict.fromkeys([*range(0x064B, 0x0653), 0x0307, 0x0640, 0x093C, 0x200B, 0x200C, 0x200D, 0xFE0F])
"""Marks that writers leave out or add: Arabic vowels, dots of Turkish and Hindi letters, invisible characters."""
_FOLDED = str.maketrans(
    {"’": "'", "ʼ": "'", "ё": "е", "ँ": "ं", "\u00a0": " ", "\u202f": " ", **{"أ": "ا", "إ": "ا", "آ": "ا"}}
)


class _Language:
    """The phrases of one language. They take long to compile, so that is done when they are needed first."""

    def __init__(self, phrases: Phrases) -> None:
        self.phrases = phrases
        self.verb_is_last = phrases.verb_is_last

    def __getattr__(self, name: str) -> re.Pattern[str]:
        """A field of the phrases, compiled."""
        text: str = getattr(self.phrases, name)
        if name == "announcing":
            text = f"{self._find_beginning()}(?P<phrase>{text})"
        elif name == "agreeing":
            text = rf"(?:(?:{text})[ ,.!。！、，]*){{1,3}}"
        compiled = re.compile(_fold(text))
        setattr(self, name, compiled)
        return compiled

    def _find_beginning(self) -> str:
        """What an announcement begins with: a clause, and words that do not change it."""
        leads, joins = self.phrases.leads, self.phrases.joins
        return rf"(?:^|[{_CLAUSE_SIGNS}]\s*|(?<!\w)(?:{joins})[, ]\s*)(?:{leads}){{0,4}}" if leads else ""

    def find_announcement(self, sentence: str, starts: list[int]) -> re.Match[str] | None:
        """The first announcement in a sentence, in which clauses of any language begin at ``starts``."""
        if not self.phrases.leads:
            return self.announcing.search(sentence)
        for start in starts:
            if (found := self.announcing.match(sentence, start)) is not None:
                return found
        return None

    def announces(self, sentence: str, previous: list[str], starts: list[int]) -> bool | None:
        """Whether a sentence announces an action; None if it has no phrase of this language. The sentence before it can
        make that depend on the user, and three announcements in a row are a plan."""
        found = self.find_announcement(sentence, starts)
        if found is None:
            return None
        start = found.start("phrase")
        if self.before.search(sentence, 0, start) is not None or _HEADING.fullmatch(sentence, 0, start) is not None:
            return False
        rest = sentence if self.verb_is_last else sentence[start:]
        if _EXPLAINED.search(rest) is not None or self.behind.search(rest) is not None:
            return False
        if len(previous) == _STEPS and all(map(self.announcing.search, previous)):
            return False
        return not previous or self.waiting.match(previous[-1]) is not None or not self._asks_user(previous[-1])

    def _asks_user(self, sentence: str) -> bool:
        """Whether a sentence asks the user for something. A question for a cause is the model's own."""
        if self.addressing.search(sentence) is not None:
            return True
        return sentence.endswith(_QUESTION_MARKS) and _WHY.search(sentence) is None

    def requests(self, sentence: str) -> bool:
        """Whether a sentence of a user asks for something to be done."""
        if sentence.endswith(_QUESTION_MARKS) and self.polite.search(sentence) is None:
            return False
        words = sentence.rstrip(f" {''.join(_QUESTION_MARKS)}")
        if self.declining.search(words) is not None:
            return False
        if (found := self.questioning.search(words)) is not None:
            words = words[: found.start()]
        return any(map(self.asking.match, (words, *_CLAUSE_END.split(words))))


def _fold(text: str) -> str:
    """A text with one spelling for letters that are written in several ways."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text).translate(_DROPPED).translate(_FOLDED)


_LATIN = tuple(
    _Language(module.PHRASES)
    for module in (english, spanish, portuguese, german, french, italian, indonesian, polish, turkish)
)
_LANGUAGES = (
    *_LATIN,
    *(_Language(module.PHRASES) for module in (chinese, hindi, arabic, russian, japanese, korean, bengali, vietnamese)),
)
_CLAUSE_START = re.compile(
    _fold(rf"[{_CLAUSE_SIGNS}]|\W(?=(?:{'|'.join(it.phrases.joins for it in _LANGUAGES if it.phrases.leads)})[, ])")
)
"""Before the first sign or word of a clause inside a sentence."""
_OTHER_SCRIPT = re.compile(r"[^\x00-\u024f\u2000-\u2fff]")
"""A character that is neither a Latin letter nor a mark or symbol. The phrases of all other languages contain one."""


_COMPILED = [name for name in Phrases.__struct_fields__ if name not in ("leads", "joins", "verb_is_last")]


def _find_languages(text: str) -> tuple[_Language, ...]:
    """The languages that a text may be written in."""
    return _LATIN if _OTHER_SCRIPT.search(text) is None else _LANGUAGES


def compile_phrases() -> None:
    """Compile the phrases of all languages, so that no answer has to wait for that."""
    for language in _LANGUAGES:
        for name in _COMPILED:
            getattr(language, name)


def announces_action(text: str) -> bool:
    """Whether an answer ends by announcing an action of its own.

    Parameters: ``text`` is the whole text of the answer.
    Returns: True if the last sentence states what the model does next.
    """
    tail = _find_tail(text)
    sentence, previous = _find_last_sentences(tail)
    if not sentence:
        return False
    starts = _find_clauses(sentence)
    verdicts = {language.announces(sentence, previous, starts) for language in _find_languages(sentence)}
    if True not in verdicts or False in verdicts:  # languages share words: a refusal in one of them counts
        return False
    return not any(pattern.search(tail) for pattern in (_DRAFT, _PLAN, _CITED))


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
    if any(language.forbidding.search(text) for language in _LANGUAGES):
        return False
    if any(language.agreeing.fullmatch(text) for language in _LANGUAGES):
        return _ends_with_question(messages[:-1])
    sentences = [sentence.strip(" \t¿¡") for sentence in _REQUEST.findall(text)]
    return any(language.requests(sentence) for sentence in sentences for language in _LANGUAGES)


def _find_tail(text: str) -> str:
    """The end of an answer, folded, without code and emphasis; empty if it ends in code."""
    tail = text[-TAIL_SIZE:].rstrip()
    tail = _LIST_MARK.sub("", _OPEN_FENCE.sub("", f"\n{tail}")).rstrip()
    if _ends_in_code(tail, complete=len(text) <= TAIL_SIZE):
        return ""
    plain = _SPANS.sub(_CODE, _fold(tail.lower()))
    plain = _ASCII_MARK.sub(lambda found: _WIDE_MARKS[found[0]], plain)
    return _EMPHASIS.sub("", plain) if _MARKUP.search(plain) is not None else plain


def _find_last_sentences(plain: str) -> tuple[str, list[str]]:
    """The last sentence of a text without marks at its end, and up to two sentences before it. The last one is empty
    if it cannot announce anything."""
    line = plain[plain.rfind("\n") + 1 :]
    if _ITEM.match(line) is not None or _OPEN_QUOTE.search(line) is not None:
        return "", []
    ends = _SENTENCE_END if _OTHER_FULL_STOPS.search(plain) is None else _ANY_SENTENCE_END
    sentences = ends.split(plain)
    languages = _find_languages(plain)
    while sentences:
        words, marks = _split_marks(_NAMED.sub(":", sentences.pop()))
        if _QUESTION.search(marks) is not None:
            break
        last_clause = _LAST_CLAUSE.search(words)
        if last_clause is not None and any([language.waiting.fullmatch(last_clause[1]) for language in languages]):
            words = words[: last_clause.start()]
        if words and not any([language.waiting.fullmatch(words) for language in languages]):
            return words + ("..." if _GOES_ON.search(marks) is not None else ""), sentences[-2:]
    return "", []


def _find_clauses(sentence: str) -> list[int]:
    """Where clauses may begin in a sentence: at its beginning, at signs, and at words that join clauses. Announcements
    begin only there, and to look there takes a third of the time of a search in each language."""
    starts = [0]
    for found in _CLAUSE_START.finditer(sentence):
        if found[0] in _CLAUSE_SIGNS:
            starts.append(found.start())
        starts.append(found.end())
    return starts


def _ends_in_code(tail: str, complete: bool) -> bool:
    """Whether a text ends with code or inside it. A text that is not complete may begin inside code."""
    if _INDENTED.search(tail) is not None:
        return True
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
    while end and unicodedata.category(sentence[end - 1])[0] in "PSZC" and sentence[end - 1] != _CODE:
        end -= 1
    return sentence[:end].lstrip(f" \t-–—>#(.,:;!¡¿…{_CODE}"), sentence[end:]


def _read_request(text: str) -> str:
    """The beginning and the end of a user's message, folded, without code and what clients add."""
    if len(text) > 2 * REQUEST_SIZE:
        text = f"{text[:REQUEST_SIZE]}\n{text[-REQUEST_SIZE:]}"
    return _SPANS.sub(_CODE, _fold(_ADDED.sub("\n", text).lower())).strip()


def _ends_with_question(messages: tuple[Message, ...]) -> bool:
    """Whether the last message is a question of the model."""
    return bool(messages) and messages[-1].role == "assistant" and _QUESTION.search(messages[-1].text[-40:]) is not None
