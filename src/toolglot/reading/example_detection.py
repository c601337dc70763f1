"""Decides from the text before a call whether the call may be shown rather than meant.

Strategy. Structure decides first: calls in code (``CodeSpans``) and in block quotes are text. A quotation mark or a
bracket that is open, the prefix of a line in a log or a listing, four spaces after a blank line, an element around the
call, a question or a sentence that is not over make a call *doubtful*: it is held, and it is text if the answer goes on
after it, because a model that means its call stops. Marks of special tokens cannot stand in a sentence by chance, so an
unfinished sentence does not make them doubtful.

Words are weak evidence. Those of ``phrases.toml`` are looked for in the last sentence before the call, and only if the
sentence points at the call: a colon follows, or nothing. ``example``: a call that looks like ordinary text is text, and
a marked call is doubtful. ``shown``: the call is doubtful. A sentence that states the model's next action (``action``)
raises neither doubt, unless it also has a phrase of ``still``. ``refused``: the call is text wherever it stands.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from msgspec import Struct

from toolglot.core.uncached_regex import compile_uncached
from toolglot.dialects.event_buffer import TAIL_SIZE

_WRITTEN = re.compile(r".*\w", re.DOTALL)
"""The text up to its last word."""
_SENTENCE_END = re.compile(r"[.!?][*_\"')]*\s|[。！？؟\n]")
_ABBREVIATIONS = ("e.g.", "i.e.", "z.", "b.")
_ABBREVIATED = ("e.g", "z. b")
"""Ends of sentences after which a full stop introduces an example."""
_COLON = re.compile(r"[:：]")
_SIGNS = re.compile(r"[:,：，、]")
"""Punctuation after a phrase that introduces an example."""
_QUESTION = re.compile(r"[?？؟]")
_REFERS = re.compile(r"(?<!\w)(?:like (?:the following|this|these|so)|as follows|below)\Z")
"""Words at the end of a sentence that point at what follows without a colon."""
_CONTRACTIONS = (("’", "'"), ("n't ", " not "), ("'d ", " would "), ("would like ", "want "), ("cannot ", "can not "))
_IS = re.compile(r"\b(here|this|that|it|what)'s ")

_BLOCK_QUOTE = re.compile(r"(?:\A|\n)[ \t]{0,3}>(?:[ \t]+>)*[ \t]+\Z")
"""The beginning of a line of a quotation in Markdown; it ends with a blank."""
_BLANKS = (" ", "\t")
_QUOTES = frozenset("\"'“„«「『【‘")
"""Quotation marks right before a call."""
_CLOSING_QUOTES = tuple("'\"`’”“»」")
"""Quotation marks after a phrase that is only mentioned."""
_INDENTED = re.compile(r"\n[ \t]*\n(?: {4}|\t)[ \t]*\Z")
"""Indented code after a blank line."""
_LINE_PREFIX = re.compile(
    r"[ \t]*(?:[+-]|//|--|;+|#+[ \t]|\*)[ \t]*(?<![-*] )\Z"
    r"|[ \t]*\|"
    r"|[ \t]*\d+(?:[ \t]*[|→│:]|\t)[ \t]*\Z"
    r"|\W{0,2}\d{2,4}[-/.:]\d\d[-/.:]\d\d"
    r"|[\w./-]+\.\w{1,8}:\d+(?::\d+)?:"
)
"""The prefix of a line of a diff, a comment, a table, a listing, a log or a search result; for the last line only."""
_STRING = re.compile(r'"""|\'\'\'')
_UNFINISHED = re.compile(r"[\w,] \Z")
"""The end of a text whose last sentence is not over."""
_ELEMENT = re.compile(r"<([A-Za-z][\w.-]*)(?:\s[^<>]{0,200})?>\s*\Z")
_AROUND_CALLS = re.compile(
    r"tool|call|func|act|invoke|use|exec|command|step|answer|respon|assist|message|think|reason|plan|output|final|xml",
)
"""Parts of the names of elements that models put around calls that they mean."""
_RESULT = re.compile(r"(?:tool|func\w*|call)s?[_-](?:resp|result|output)")
"""The names of elements that hold the result of a call."""
_SPECIAL = re.compile(
    r"<[^\s<>\"'=]{0,40}[|｜‖▁:]|<start_function_call>|\]<\]|<<<\[|\[(?:[A-Z]+_[A-Z_]+|unused\d+)\]|✿"
)
"""The beginning of marks that are special tokens, which ordinary text does not contain."""


def is_shown(text: str) -> bool:
    """Whether a call after this text is never meant: it is in a block quote, or the text says that it must not be made.

    Parameters: ``text`` is the text before a call.
    """
    if text[-1:] in _BLANKS and _BLOCK_QUOTE.search(text, max(0, len(text) - 40)) is not None:
        return True
    sentence, signs = _take_last_sentence(_fold(text[-TAIL_SIZE:]))
    return _COLON.search(signs.partition("\n")[0]) is not None and _phrases("refused").search(sentence) is not None


def announces_example(text: str) -> bool:
    """Whether the end of a text introduces an example.

    Parameters: ``text`` is the text before a call.
    Returns: True if the call that follows is an example; a marked call, only if the answer goes on after it.
    """
    sentence, signs = _take_last_sentence(_fold(text[-TAIL_SIZE:]))
    end = signs.partition("\n")[0]
    points = _SIGNS.search(end) is not None or sentence.endswith(_ABBREVIATED)
    if not points and end.strip(" *_"):
        return False
    phrase = _phrases("example").search(sentence)
    if phrase is None or not (points or phrase[0].strip("#* ") == sentence.strip("#* ")):
        return False
    return not _states_action(sentence) and signs[:1] not in _CLOSING_QUOTES


def is_doubtful(text: str, mark: str = "") -> bool:
    """Whether a call after this text is delivered only at the end of the answer.

    Parameters: ``text`` is the text before a call, ``mark`` the beginning of the call.
    """
    text = _fold(text[-TAIL_SIZE:])
    if not text.strip():
        return False
    if _is_quoting(text):
        return True
    sentence, signs = _take_last_sentence(text)
    if _QUESTION.search(signs) is not None or (sentence + signs).count('"') % 2:
        return True
    unfinished = _UNFINISHED.search(text, len(text) - 2) is not None
    unfinished = unfinished and (_SPECIAL.match(mark) is None or _phrases("still").search(sentence) is not None)
    alone = "\n" in signs and not signs.strip(" \n*_")
    points = alone or _COLON.search(signs) is not None or _REFERS.search(sentence) is not None
    if not (unfinished or points) or _states_action(sentence):
        return False
    return unfinished or any(_phrases(role).search(sentence) for role in ("shown", "example"))


def ends_as_question(text: str) -> bool | None:
    """Whether a sentence that goes on with this text is a question; None if it does not end in it."""
    found = _SENTENCE_END.search(text)
    return None if found is None else _QUESTION.search(found[0]) is not None


def _states_action(sentence: str) -> bool:
    """Whether a sentence states the model's next action, and neither waits for the user nor tells something."""
    return _phrases("action").search(sentence) is not None and _phrases("still").search(sentence) is None


def _is_quoting(text: str) -> bool:
    """Whether the end of a text is the prefix of a quotation, or inside a string or an element that is no wrapper."""
    if text[-1] in _QUOTES or text.rstrip()[-1] == "(" or len(_STRING.findall(text)) % 2:
        return True
    line = text.rpartition("\n")[2]
    if _LINE_PREFIX.match(line) is not None or (line.isspace() and _INDENTED.search(text) is not None):
        return True
    element = _ELEMENT.search(text)
    return element is not None and (not _AROUND_CALLS.search(element[1]) or bool(_RESULT.search(element[1])))


def _take_last_sentence(text: str) -> tuple[str, str]:
    """Return the last sentence of a text, without contractions, and the punctuation after it."""
    found = _WRITTEN.match(text)
    written = found[0] if found is not None else ""
    line = written.rpartition("\n")[2]
    start = 0
    for end in _SENTENCE_END.finditer(line):
        if not line[: end.start() + 1].endswith(_ABBREVIATIONS):
            start = end.end()
    sentence = line[start:] + " "
    for written_form, form in _CONTRACTIONS:
        sentence = sentence.replace(written_form, form)
    return _IS.sub(r"\1 is ", " ".join(sentence.split())), text[len(written) :]


def _fold(text: str) -> str:
    """A text in lower case, as long as before: the only letter that becomes two is that of Turkish."""
    return text.replace("İ", "i").lower()


# -- phrases -----------------------------------------------------------------------------------------------------------

_SPACELESS = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]")


@cache
def _load_phrases() -> dict[str, list[str]]:
    return tomllib.loads(Path(__file__).with_name("phrases.toml").read_text("utf-8"))


@cache
def _phrases(role: str) -> re.Pattern[str]:
    """The phrases of a role as one expression; compiled when a call follows text for the first time."""
    written = [(phrase, _write_phrase(phrase)) for phrase in _load_phrases()[role]]
    words = "|".join(pattern for phrase, pattern in written if _SPACELESS.search(phrase) is None)
    spaceless = "|".join(pattern for phrase, pattern in written if _SPACELESS.search(phrase) is not None)
    return compile_uncached(rf"(?<!\w)(?:{words})|{spaceless}" if spaceless else rf"(?<!\w)(?:{words})")


def _write_phrase(phrase: str) -> str:
    """Write a phrase as an expression."""
    first, last = phrase[0] == "^", phrase[-1] == "$"
    spaceless = _SPACELESS.search(phrase) is not None
    pattern = ""
    for word in phrase.strip("^$").split():
        optional = word[0] == "("
        gap = r"[^，,。]{0,12}?" if spaceless else r"(?: [^\s,]+){0,3}?" if optional else r"(?: \S+){0,6}?"
        plain = re.escape(word.strip("()")).replace("/", "|").replace(r"\*", r"\w*")
        if word.strip("()") == "..":
            pattern += gap
        elif optional:
            pattern += f"(?: (?:{plain}))?"
        else:
            pattern += plain if spaceless else f" (?:{plain})"
    pattern = pattern.removeprefix(" ")
    end = r"\Z" if last else "" if spaceless else r"(?!\w)"
    return (r"\A\W*" if first else "") + pattern + end


_MAX_INTRODUCTION = 200
_ENDS_IN_COLON = re.compile(r"[:：][*_\s]*\Z")
_ACTS = re.compile(
    r"\W*(?:(?:sure|okay|ok|certainly|of course|great|now|first|yes|alright|got it)\b[^.!?\n]{0,40}[,.!]\s*)?"
    r"(?:(?:sure|okay|ok|certainly|of course|great|alright)\W*\Z"
    r"|(?:i|let me|let's|let’s)\b)",
)
"""A sentence in which the model states its next action."""
_TEACHES = re.compile(
    r"\A(?:for|while|if|elif|else|def|class|with|try|except|finally|async|match|case|return)\b.*:"
    r"|\b(?i:would|could|syntax|signature|usage|documentation|docs|manual|readme|logs?|transcript|definition|how to"
    r"|like this|looks like|equivalent|snippet|script|python code)\b"
)
"""A line of code that opens a block, or words about calls in general."""


def introduces_call(text: str) -> bool:
    """Whether a text does no more than introduce a call.

    Parameters: ``text`` is all the text before a call.
    Returns: True if it is empty, or one short line that ends in a colon or states the model's next action.
    """
    written = text.strip()
    if not written:
        return True
    if len(written) > _MAX_INTRODUCTION or "\n" in written or _TEACHES.search(written) is not None:
        return False
    return _ENDS_IN_COLON.search(written) is not None or _ACTS.match(_fold(written)) is not None


_HANDS_OVER = re.compile(
    r"\W*(?:(?:sure|ok|okay|certainly|of course|alright|great|yes|so|now|first)\b\W*)?"
    r"(?:here you go|here it is|answer|solution"
    r"|here(?: is|['’]s| are) the (?:\w+ ){0,2}(?:calls?|answer|solution)(?: (?:to|for|you need)\b.*)?"
    r"|the (?:\w+ ){0,2}calls? (?:to|for) .* (?:is|are)"
    r"|(?:let me|let['’]s|i(?:['’]ll| will)) (?:now |first |just )?(?:check|look|get|fetch|find|search|run|call|use"
    r"|query|calculate|compute|retrieve|do|start)\b(?!.*\b(?:this|these|that|what|not)\b).*)?\W*",
)
"""A sentence that hands the call over that follows, or states the model's next action."""


def hands_over(text: str) -> bool:
    """Whether a text does nothing but hand the call over that follows, in its last sentence.

    Parameters: ``text`` is all the text before a call.
    Returns: True if it is empty, or its last sentence states the model's next action or announces its call.
    """
    sentence, signs = _take_last_sentence(_fold(text[-TAIL_SIZE:]))
    return not text.strip() or (bool(sentence) and _HANDS_OVER.fullmatch(sentence + signs) is not None)


_MARKS = ("<", "[", "{", "]")


class CodeSpans(Struct, eq=False):
    """The code fences and the inline code that are open at a position of the answer. ``begins_with_mark``: so does the
    inline code."""

    fences: list[str] = []
    inline: str = ""
    begins_with_mark: bool = False

    def pass_fence(self, ticks: str, label: str) -> None:
        """Process a fence: with a label it opens, also inside another one; without a label it closes the open one."""
        if not self.fences or (label and not label.isspace()):
            self.fences.append(ticks)
        elif ticks.startswith(self.fences[-1]):
            self.fences.pop()

    def pass_ticks(self, ticks: str, following: str) -> None:
        """Process backticks: inline code is closed by as many as opened it."""
        if not self.fences and ticks[0] == "`":
            self.inline = "" if self.inline == ticks else self.inline or ticks
            self.begins_with_mark = following in _MARKS

    def end_line(self, paragraph: bool) -> None:
        """End inline code with its line, unless it began with a mark or as a fence does, and the paragraph goes on."""
        if paragraph or not (self.begins_with_mark or len(self.inline) > 2):
            self.inline = ""

    def clear(self) -> None:
        self.fences.clear()
        self.inline = ""
