"""Detects narrated stops: answers that end by announcing an action of the model's own, without making the call.

Strategy. A missed announcement costs the user's turn, a wrong one only a request. Only the last sentence of the last
line decides. Code and quoted text are replaced by a placeholder first; an end inside code, a list, a block quote, a
plan or a draft of a letter is no announcement, and neither is a question. The words of the language decide the rest
(``phrase_lists``): a clause must begin with the model's own future ("let me", "I'll now"), whatever the verb is, unless
it is one of saying, thinking or waiting, which are few; or with a verb in the first person; or with a gerund, if the
sentence ends with a colon or dots or says "now"; or with "next step", if it names a command. In languages whose verb
comes last the end of the sentence counts instead. Conditions, later times and requests to the user refuse it, and so
does a question to the user in the sentence before. The conversation wants action unless the last message only asks for
words, thanks, agrees or states something that is not about a computer. Only the ends of long texts are read.
"""

from __future__ import annotations

import re
import unicodedata

from toolglot.core.conversation import Message
from toolglot.gateway.recovery.phrase_lists import Language, find_languages, fold

TAIL_SIZE = 600
"""How many characters at the end of an answer can hold an announcement."""
REQUEST_SIZE = 2000
"""How many characters at the beginning and at the end of a user's message can hold a request."""
_CODE = "□"
"""Replaces code, quoted text and names of files. It is a symbol, so it ends no word."""

_FENCE = re.compile(r"^[ \t>]*(?:```+|~~~+)[ \t]*(\S*)", re.MULTILINE)
_OPEN_FENCE = re.compile(r"\n[ \t]*+(?:```++|~~~++)[ \t]*+\w*+\s*+\Z")
_INDENTED = re.compile(r"\n[ \t]*\n(?: {4}|\t)[^\n]*\Z")
_LIST_MARK = re.compile(r"\n[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]*\Z")
_ITEM = re.compile(r"[ \t]*(?:[-+•‣▪>|]|\*[ \t]|\*{0,2}\(?\d{1,2}[.)]|\[[ xX]\])")
"""The beginning of a list item, a block quote or a row of a table."""
_SPANS = re.compile(
    r"``[^`\n]{1,200}``|`[^`\n]{1,200}`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»|「[^」\n]{1,300}」"
    r"|『[^』\n]{1,300}』|\]\([^)\n]{1,300}\)|(?<![\w./-])[\w-]{2,40}+\.[a-z]{1,5}(?!\.?\w)"
)
_OPEN_QUOTE = re.compile(r"[\"“„«「『]")
_EMPHASIS = re.compile(r"\*+|(?<!\w)__?|__?(?!\w)|^[ \t]*#+[ \t]*", re.MULTILINE)
_EMOJI = r"[\U0001f300-\U0001faff\u2600-\u27bf]"
_SENTENCE_END = re.compile(rf"(?<=[.!?…])[)\]]?\s+|(?<=[。！？।؟])\s*(?=\S)|(?<={_EMOJI})\s+|\n+")
_LAST_CLAUSE = re.compile(r"\s?[,;،，、–—]\s*([^,;،，、–—]{2,60})\Z")
"""The clause after the last comma, which may ask for patience."""
_EXPLAINED = re.compile(r"(?<!\d)(?::\s|：)\s*\w")
"""Text after a colon: what was announced has been written."""
_NAMED = re.compile(rf"\s*[:：]\s*{_CODE}\W*\Z")
"""Code after a colon at the end, which names what the sentence is about."""
_LABEL = re.compile(r"[^:：]*(?::\s|：)\s*")
"""Words before a colon, as a label, a title or a name in a dialogue."""
_QUESTION = re.compile(r"[?？؟]")
_GOES_ON = re.compile(r"…|\.\.\.|[:：]")
_ASCII_MARK = re.compile(r"(?<=[\u3040-\u30ff\u4e00-\u9fff])[,;:!?]")
"""ASCII punctuation after Chinese and Japanese characters. The wide form of each mark is 0xFEE0 further."""
_HEADS = re.compile(r"[^\n.!?。]{0,40}[:：,]\s|[ \t]*\n")
_INTRODUCES = re.compile(r"[^\n:：]{0,40}[:：]\s*[^\s:：]")
"""What follows the words of a heading, and words that introduce a text for others."""
_LETTER = re.compile(r",[ \t]*\n[^\n]*\Z")
"""A last line that goes on after a comma, as in a letter or a poem."""
_ADDED = re.compile(
    r"<(system-reminder|environment_details|environment_context|user_info|context|attached_files)\b.*?(?:</\1>|\Z)"
    r"|```.*?(?:```|\Z)|</?(?:task|user_message|feedback|user_query|query|answer)>",
    re.DOTALL,
)
"""What clients add to a message, and code."""
_TECHNICAL = re.compile(
    rf"{_CODE}|\w[/\\]|[/\\]\w|\w_\w|\w\(\)|\w\.[a-z]\w|--\w|\d\.\d|\w-\d|(?<![^\W\d_])(?:api|app|back(?:end|up)|branch|bug|build|ci"
    r"|commit|config|container|cpu|cron|css|csv|database|deploy|docker|endpoint|err|error|fail|file|folder|git|html|http|job"
    r"|json|log|login|merge|nginx|npm|pdf|pod|port|pr|readme|redis|repo|script|serv|sql|ssh|staging|tag|test|todo|url"
    r"|version|web|yaml|[ck]od\w{0,3})(?:e?s|ed|er|ing?)?(?![^\W\d_])"
)
"""What is about a computer in any language: code, paths, identifiers, and words that all languages use."""
_REQUEST = re.compile(r"[^.!?…。！？।؟\n]+(?:\.(?=\w)[^.!?…。！？।؟\n]+)*[?？؟]?")


def announces_action(text: str) -> bool:
    """Whether an answer ends by announcing an action of its own.

    Parameters: ``text`` is the whole text of the answer.
    Returns: True if the last sentence states what the model does next.
    """
    tail = _find_tail(text)
    line = tail[tail.rfind("\n") + 1 :]
    if not line or line[-1] in "?？؟" or _ITEM.match(line) is not None or _OPEN_QUOTE.search(line) is not None:
        return False
    sentences = _SENTENCE_END.split(tail)
    languages = find_languages(tail)
    verdicts = {_announces(language, list(sentences)) for language in languages}
    if True not in verdicts or False in verdicts:  # languages share words: a refusal in one of them counts
        return False
    return _LETTER.search(tail) is None and not any(_is_citation(language, tail, line) for language in languages)


def wants_action(messages: tuple[Message, ...]) -> bool:
    """Whether a conversation still wants action.

    Parameters: ``messages`` are the messages of the conversation, without the answer.
    Returns: True after a tool result and if the last message of the user asks for something to be done or is about the
    user's own files or system; False for other questions, and for plans and explanations that are asked for.
    """
    last = messages[-1] if messages else None
    if last is None or last.role != "user":
        return last is not None and last.role == "tool"
    text = _read_request(last.text)
    languages = find_languages(text)
    if any(language.forbids.search(text) for language in languages):
        return False
    words = re.findall(r"[^\s,.!。！、，]+", text)
    if words and any(all(map(language.agrees.fullmatch, words)) for language in languages):
        before = messages[-2] if len(messages) > 1 else None
        return before is not None and before.role == "assistant" and _QUESTION.search(before.text[-40:]) is not None
    sentences = [sentence.strip(" \t¿¡#*-") for sentence in _REQUEST.findall(text)]
    return any(_requests(languages, sentence) for sentence in sentences)


def _announces(language: Language, sentences: list[str]) -> bool | None:
    """Whether the last of the sentences announces an action; None if it has no phrase of the language."""
    sentence, goes_on = _take_last_sentence(language, sentences)
    step = language.steps.match(sentence)
    sentence = sentence[step.end() :].lstrip(" :：") if step is not None else sentence
    start = _find_action(language, sentence, goes_on)
    if start is None:
        if step is None or _LAST_CLAUSE.search(sentence) is not None or not _is_technical(language, sentence):
            return None
        start = 0
    before = (language.before, language.asks)
    if start < 0 or language.never.search(sentence) or any(words.search(sentence, 0, start) for words in before):
        return False
    if _has_colon(language, sentence, start):
        return False
    if len(sentences) > 1 and all(_find_action(language, each, False) not in (None, -1) for each in sentences[-2:]):
        return False  # three announcements in a row are a plan
    return not sentences or not _asks_user(language, sentences[-1])


def _has_colon(language: Language, sentence: str, start: int) -> bool:
    """Whether a label stands before an announcement or an explanation after it."""
    label = _LABEL.match(sentence, 0, start)
    return _EXPLAINED.search(sentence, start) is not None or (label is not None and not language.skip_leads(label[0]))


def _find_action(language: Language, sentence: str, goes_on: bool) -> int | None:
    """Where the model's own action is stated in a sentence; -1 if it is one of saying or thinking."""
    found = language.opens.search(sentence)
    if found is not None:
        verb = language.skip_leads(sentence, found.end())
        denied = language.says.search(sentence, found.start(), len(sentence) if language.free_order else found.end())
        return found.start() if denied is None and language.says.match(sentence, verb) is None else -1
    starts = [0, *(found.end() for found in language.clause.finditer(sentence))]
    place = _find_present(language, sentence, starts, goes_on)
    if place is not None:
        return place
    plain = language.plain_ends.search(sentence)
    found = language.ends.search(sentence) or plain
    if found is None:
        return None
    start = max(start for start in starts if start <= found.start())
    others = language.others.search(sentence, language.skip_leads(sentence, start)) if found is plain else None
    return found.start() if others is None and language.says.search(sentence, start) is None else -1


def _find_present(language: Language, sentence: str, starts: list[int], goes_on: bool) -> int | None:
    """Where a clause begins with a verb in the first person or, if the sentence goes on, a gerund; -1 if excluded."""
    goes_on, refused = goes_on or language.now.search(sentence) is not None, False
    for place in [*starts, *(language.skip_leads(sentence, start) for start in starts)]:
        found = language.doing.match(sentence, place)
        found = language.gerunds.match(sentence, place) if found is None and goes_on else found
        if found and not language.says.match(sentence, place) and not language.excluded.search(found[0]):
            return place
        refused = refused or found is not None
    return -1 if refused else None


def _asks_user(language: Language, sentence: str) -> bool:
    """Whether a sentence asks the user for something. A question for a cause is the model's own."""
    if language.waits.match(sentence) is not None or language.asks.search(sentence) is not None:
        return language.waits.match(sentence) is None
    return _QUESTION.search(sentence[-3:]) is not None and language.why.search(sentence) is None


def _is_citation(language: Language, tail: str, line: str) -> bool:
    """Whether the end of an answer is a part of a plan, or a text for others: a draft, a translation or a dialogue."""
    heads = any(_HEADS.match(tail, found.end()) for found in language.plans.finditer(tail))
    return heads or any(_INTRODUCES.match(line, found.end()) for found in language.cites.finditer(line))


def _requests(languages: list[Language], sentence: str) -> bool:
    """Whether a sentence of a user asks for something to be done."""
    words = sentence.rstrip(" ?？؟")
    starts = [(language, start) for language in languages for start in (0, language.skip_leads(words))]
    doubtful = len(words) < len(sentence.rstrip()) or any(each.states.match(words, start) for each, start in starts)
    verdicts = {_finds_request(language, words, doubtful) for language in languages}
    return True in verdicts and False not in verdicts


def _finds_request(language: Language, words: str, doubtful: bool) -> bool | None:
    """Whether a clause asks for something to be done; False if the sentence asks for words only. A doubtful sentence, a
    question or a statement, must be polite or be about the user's own files or system."""
    wordy = False
    for clause in language.clause.split(words):
        words_only = language.tells.search(clause) is not None
        wordy = wordy or words_only
        vague = doubtful or (len(clause) <= 4 if language.spaceless else " " not in clause.strip())  # too short
        asked = language.orders.search(clause) or (not words_only and language.polite.search(clause))
        if asked or (not wordy and (not vague or _is_technical(language, clause))):
            return True
    return False if wordy else None


def _is_technical(language: Language, text: str) -> bool:
    """Whether a text names a file, a command, an identifier or another thing of a computer."""
    return _TECHNICAL.search(text) is not None or language.things.search(text) is not None


def _find_tail(text: str) -> str:
    """The end of an answer, folded, without code and emphasis; empty if it ends in code."""
    tail = text[-TAIL_SIZE:].rstrip()
    tail = _LIST_MARK.sub("", _OPEN_FENCE.sub("", f"\n{tail}")).rstrip()
    if _ends_in_code(tail, complete=len(text) <= TAIL_SIZE):
        return ""
    plain = _SPANS.sub(_CODE, fold(tail))
    plain = plain if plain.isascii() else _ASCII_MARK.sub(lambda found: chr(ord(found[0]) + 0xFEE0), plain)
    return _EMPHASIS.sub("", plain) if any([mark in plain for mark in "*_#"]) else plain


def _take_last_sentence(language: Language, sentences: list[str]) -> tuple[str, bool]:
    """Remove the last sentence from the list and return it without the marks after it, and whether these marks say that
    it goes on. Requests for patience after it are skipped; it is empty if it is a question."""
    while sentences:
        words, marks = _split_marks(_NAMED.sub(":", sentences.pop()))
        if _QUESTION.search(marks) is not None:
            break
        last_clause = _LAST_CLAUSE.search(words)
        if last_clause is not None and language.waits.fullmatch(last_clause[1]) is not None:
            words = words[: last_clause.start()]
        if words and language.waits.fullmatch(words) is None:
            return words, _GOES_ON.search(marks) is not None
    return "", False


def _ends_in_code(tail: str, complete: bool) -> bool:
    """Whether a text ends with code or inside it. A text that is not complete may begin inside code."""
    if _INDENTED.search(tail) is not None:
        return True
    inside, last = False, None
    for last in _FENCE.finditer(tail):
        inside = True if last[1] else not inside
    if last is None or "\n" not in tail[last.start() :]:
        return last is not None
    return inside and (complete or bool(last[1]))


def _split_marks(sentence: str) -> tuple[str, str]:
    """A sentence without punctuation, symbols and white space around it, and what stood after it."""
    end = len(sentence)
    while end and unicodedata.category(sentence[end - 1])[0] in "PSZC" and sentence[end - 1] != _CODE:
        end -= 1
    return sentence[:end].lstrip(f" \t-–—>#(.,:;!¡¿…{_CODE}"), sentence[end:]


def _read_request(text: str) -> str:
    """The beginning and the end of a user's message, folded, without code and what clients add."""
    text = text if len(text) <= 2 * REQUEST_SIZE else f"{text[:REQUEST_SIZE]}\n{text[-REQUEST_SIZE:]}"
    return _SPANS.sub(_CODE, fold(_ADDED.sub("\n", text))).strip()
