"""Detects examples: calls in Markdown code, and calls after a phrase that introduces one.

Strategy. Words before a call are weak evidence: a model that runs an example file, fills in a placeholder or looks at
the output of a test uses such words and means its call. So single words do not count. What counts is a phrase that
only introduces an example, and only at the end of the last sentence ("for example:", "a call looks like this:"), as a
heading ("Example:"), or at the beginning of that sentence ("For example, to read a file you would write:"). A sentence
in which the model states its next action ("let me", "I'll") introduces an example only if the action is to show one.
Punctuation after the phrase is stripped first, in one step, so that no pattern backtracks over it. ``CodeSpans`` tracks
open fences and inline code. Phrases are compared with text in lower case. Behind such a phrase a call that looks like
ordinary text is text, and a marked call is doubtful.

Other words and signs precede both (``phrases/doubts.py``): "I would call", "if you agree", "not this:", "the model
writes", a question, a bracket or a quotation mark, the prefix of a line in a log or a listing, four spaces behind a
blank line, an element around the call, a sentence that is not over. A model that means its call stops behind it, so
such a call is doubtful: it is held until the end of the answer, and if the answer goes on, it was shown. A sentence
that states the next action ("let me run this:") leaves no doubt.
"""

from __future__ import annotations

import re

from msgspec import Struct

from toolglot.dialects.event_buffer import TAIL_SIZE
from toolglot.reading.phrases import doubts
from toolglot.reading.phrases.examples import EXAMPLE, EXAMPLE_CJK, HEADING

_WRITTEN = re.compile(r".*\w", re.DOTALL)
"""The text up to its last word."""

_SENTENCE_END = re.compile(r"[.!?][*_\"')]*\s|[。！？\n]")

_WORD = r"[^\W\d_]+(?:[-'’][^\W\d_]+)?"
_CALL = r"(?:calls?|requests?|invocations?|usages?|uses?)"
_FORM = r"(?:format|syntax|notation|usage)"
_SHOWN = r"(?:json|payload|body|object|response|output|request)"
_THIS = r"(?:like (?:this|so|that|the following)|this way|as follows)"
_EXAMPLE = r"(?:examples?|samples?|illustrations?)"
_MODAL = r"(?:would|could|might)(?: then| also| simply| just)?"
_MAY = r"(?:['’]d|(?: would| could| might| can)(?: then| also| simply| just)?)"
_WRITE = r"(?:send|write|call|invoke|use|say|type|issue|emit|respond with|reply with|answer with)"
_SUBJECT = r"(?:you|one|someone|users|(?:the|an?) (?:model|assistant|user|agent|bot|llm))"

_HEADING = re.compile(
    r"[\W\d_]*+(?:(?:an?|ein|une?|some|usage|simple|short|minimal|basic|quick|full|complete|concrete|another|correct|typical)\s+)*"
    rf"(?:(?:examples?|samples?)(?:\s+(?:tool|function|api))*(?:\s+(?:{_CALL}|{_FORM}))?(?:\s+#?\d+)?"
    rf"|examples?\s+(?:of|for)\s+(?:{_WORD}\s+){{0,4}}(?:{_CALL}|{_FORM})"
    rf"|(?:tool\s+|function\s+|call\s+)?{_FORM}"
    r"|beispiele?|beispielaufruf|ejemplos?|exemples?|exemplos?|esempio|esempi|voorbeeld|przykład|пример\w?|örnek"
    rf"|示例|例子|范例|例|例文|使用例|用法|예시|예|예제|{HEADING})"
    r"(?:\s*\([^()\n]{1,60})?",
)
"""A whole line that introduces an example; a parenthesis after it has lost its closing bracket."""

_ABBREVIATED = re.compile(r"(?<!\w)(?:e\.g|z\. ?b|p\. ?ej|p\. ?ex)\Z")
"""Phrases that end with a full stop."""

_CLOSING = re.compile(
    r"(?<!\w)(?:"
    r"(?:for|as an|by way of) (?:example|instance|illustration)|(?<=[,;–—-] )as in|to illustrate(?: (?:this|that|it))?"
    rf"|(?:what|how) (?:an?|the|such an?|this|that) (?:(?:tool|function) )?(?:call|invocation)"
    rf" (?:{_MODAL} )?looks?(?: like)?"
    rf"|(?:is|are|(?:would|could|should|must|can) be) (?:written|spelled|formatted) (?:as|{_THIS})"
    rf"|(?:is|are|would be|could be) (?:called|invoked|used) {_THIS}"
    rf"|(?:the|its?|their|your|our|this|correct|expected|right|required|exact) (?:{_WORD} ){{0,3}}{_FORM}"
    rf"(?: (?:of|for|to) (?:{_WORD} ){{0,6}}\w+)? (?:is|would be|should be|must be|looks like)"
    r"(?: (?:as follows|this|the following|like this|simply|just))?"
    rf"|the {_FORM} (?:that )?(?:i|we|you|it|they|models?) (?:{_WORD} ){{1,6}}is(?: (?:as follows|this|the following))?"
    r"|(?:here(?:'s|’s| is| are| comes?)|(?:this|that|below|the following) is(?: only| just| merely)?|consider"
    r"|(?:show|give)(?: you| the user)?)"
    rf" (?:an?|another|one|some|the following|two|a few) (?:{_WORD} )?(?:examples?|samples?)"
    rf"(?: (?:tool |function )?{_CALL})?(?: of (?:(?:how|what|using|such)\b.*|an? (?:{_WORD} ){{0,2}}{_CALL}"
    rf"|(?:(?:the|this|that|an?|its?|your|such) )?(?:{_WORD} ){{0,2}}{_SHOWN}))?"
    r"|zum beispiel|beispielsweise|por ejemplo|par exemple|por exemplo|per esempio|ad esempio|bijvoorbeeld"
    r"|na przykład|например|к примеру|örneğin|ví dụ|contohnya|misalnya"
    r"|(?:das format|die syntax|die form) (?:ist|lautet)|sieht (?:\w+ ){0,4}so aus|so sieht (?:\w+ ){1,4}aus"
    r"|hier (?:ist|kommt) ein beispiel(?:aufruf)?"
    r"|(?:man|du|sie) (?:würdest|würden?|könnte[nst]?) (?:\w+ ){0,4}schreiben"
    r"|man schreibt|(?:el formato|la sintaxis) es(?: (?:el|la) siguiente)?|aquí (?:hay|está|tienes|va) un ejemplo"
    r"|se ve así|se escrib(?:e así|iría)|(?:le format|la syntaxe) est(?: (?:le|la) suivante?)?|voici un exemple"
    r"|ressemble à (?:ceci|cela|ça)|on écrirait|s['’]écrit (?:ainsi|comme suit)"
    rf"|{EXAMPLE})\Z",
)
"""Phrases that introduce an example where they end the sentence."""

_CLOSING_CJK = re.compile(
    r"(?:例如|比如说?|譬如|举例(?:来说|说明)?|たとえば|例えば|예를 들어|예를 들면)[^我让请来，,、。]{0,12}\Z"
    r"|(?:格式|语法|写法)(?:如下|为|是|就是|应为|应该是)(?:这样的?)?\Z"
    r"|(?:这|下面|以下|这里)(?:就)?是一?个?[^我让，,、。]{0,8}(?:示例|例子|范例)\Z|调用(?:看起来|长得)?(?:就)?像这样\Z"
    r"|(?:你|您|用户|模型|助手)(?:可以|会|应该|能)这样(?:写|调用)\Z"
    rf"|(?:{EXAMPLE_CJK})\Z"
)
"""The same for languages without spaces between words."""

_SUPPOSING = re.compile(
    r"\W*+(?:(?:so|and|but|thus|then|first|again|for example|for instance|(?:in )?general(?:ly)?|usually|typically"
    rf"|normally|in (?:this|that) {_FORM}),? )?(?:"
    rf"(?:for (?:example|instance)|as an example|e\.g\.),? (?:(?:to|in order to) \w|.*\b{_MODAL} {_WRITE}\b)"
    rf"|(?:(?:to|in order to)\b[^,.:;]{{1,80}},? )?{_SUBJECT} {_MODAL} {_WRITE}\b"
    rf"|{_SUBJECT}['’]d {_WRITE}\b|{_SUBJECT} can(?: also| simply| just)? (?:write|send|say|type|emit)\b"
    rf"|(?:to|in order to)\b[^,.:;]{{1,80}},? {_SUBJECT} (?:writes?|sends?|types?|emits?)\b"
    rf"|{_SUBJECT}{_MAY}? (?:writes?|calls?|uses?|invokes?|makes?|sends?) (?:{_WORD} ){{1,3}}{_THIS}\Z"
    rf"|(?:if|when|suppose|imagine|assume)\b[^.:;]{{1,80}}\b(?:i|we|{_SUBJECT}){_MAY} {_WRITE}\b"
    rf"|(?:suppose|imagine|assume) (?:that )?{_SUBJECT} (?:writes?|wrote|sends?|sent|calls?|says?|said)\b"
    rf"|(?:to|in order to|if (?:you|one|someone) (?:want|need|wish)s? to)\b[^,.:;]{{1,80}}, (?:just |simply )?"
    r"(?:write|send|say|type|emit|respond with|reply with|answer with)(?: this| the following| something like this)?\Z"
    rf"|(?:an?|another|one) (?:{_WORD} ){{0,2}}(?:{_EXAMPLE}|{_CALL})(?: (?:tool |function )?{_CALL})?"
    rf"(?: of (?:an?|such an?) (?:{_WORD} ){{0,2}}{_CALL})? (?:is|would be|could be|might be)"
    r"(?: this| the following)?\Z|this is (?:only|just|merely) an? (?:example|sample)\b|this is what it looks like\Z"
    rf"|(?:an?|such an?) (?:{_WORD} ){{0,2}}{_CALL} looks? (?:something )?like\Z"
    rf"|(?:take|see|consider) (?:this|the following) (?:{_WORD} )?{_EXAMPLE}\Z"
    rf"|(?:the|its?|their|your) (?:{_WORD} )?(?:docs?|documentation|manual|readme|guide|specification|prompt)"
    rf" (?:gives?|shows?|has|have|contains?) (?:an?|this|the following) (?:{_WORD} )?{_EXAMPLE}\Z"
    rf"|(?:the|this) (?:following )?{_EXAMPLE} (?:below )?shows (?:how|what|an?|the) (?:{_WORD} ){{0,5}}"
    rf"(?:{_CALL}|{_FORM})(?: looks(?: like)?)?\Z"
    r"|(?:the|an?|another|this|that|one) (?:\w+ )?(?:model|assistant|agent|bot|llm)"
    r" (?:wrote|said|replied|answered|responded|sent|emitted|produced)(?: this| the following| back)?\Z"
    rf"|(?:please )?(?:use|write|follow)\b[^,.:;]* (?:this|the following) (?:form|{_FORM})\Z"
    rf"|(?:it|this|that|one|such|each|every|an?|the|tool|function|calls?|tools) (?:[^,.:;]*\b)?(?:"
    rf"{_MODAL} look (?:something )?(?:like\Z|{_THIS}\Z)|looks? {_THIS}\Z"
    rf"|(?:has|have|takes?) (?:this|the following) (?:form|{_FORM})\Z)"
    r")",
)
"""Sentences about what a call would be or looks like, unless they state the model's next action."""

_STATES = re.compile(
    r"(?<!\w)(?:let me|let us|let's|let’s|lets|i'll|i’ll|i will|i am|i'm|i’m|i need|i want|i have to|i should|i shall"
    r"|i can now|we'll|we’ll|we will|we need|we should|now|going to|ich werde|lass mich|je vais|voy a)(?!\w)",
)
_ACTING = re.compile(rf"{_STATES.pattern}|我|让")
"""Phrases that state the model's next action."""

_LOOKING = re.compile(
    rf"(?:{_ACTING.pattern}).*\b(?:see|check|look|find|learn|know|understand|verify|confirm|read|inspect|examine|review"
    r"|figure|determine)\b|[我让].*[读看查检]",
)
"""Phrases that state that the model looks something up now."""

_QUOTES = {"'": "'", '"': '"', "`": "`", "‘": "’", "“": "”", "„": "“”", "«": "»", "「": "」"}
"""Opening quotes around a phrase that is only mentioned, and their closing quotes."""
_BLOCK_QUOTE = re.compile(r"(?:\A|\n)[ \t]{0,3}>(?:[ \t]+>)*[ \t]+\Z")
"""The beginning of a line of a quotation in Markdown; it ends with a blank."""
_BLANKS = (" ", "\t")
_COLON = re.compile(r"[:：]")
_SIGNS = re.compile(r"[:,：，、]")
"""Punctuation that may follow such a phrase."""


def is_shown(text: str) -> bool:
    """Whether a call after this text is never meant: it is in a block quote, or the text says that it must not be made.

    Parameters: ``text`` is the text before a call.
    """
    if text[-1:] in _BLANKS and _BLOCK_QUOTE.search(text, max(0, len(text) - 40)) is not None:
        return True
    sentence, signs = _take_last_sentence(_fold(text[-TAIL_SIZE:]))
    return _COLON.search(signs.partition("\n")[0]) is not None and doubts.REFUSED.search(sentence) is not None


def announces_example(text: str) -> bool:
    """Whether the end of a text introduces an example.

    Parameters: ``text`` is the text before a call.
    Returns: True if the call that follows is an example; a marked call, only if the answer goes on after it.
    """
    written, rest = _split(_fold(text[-TAIL_SIZE:]))
    line, signs = written.rpartition("\n")[2], rest.partition("\n")[0]
    if _HEADING.fullmatch(line) is not None:
        return True
    if signs[:1] == "." and _ABBREVIATED.search(line, max(0, len(line) - 8)) is not None:
        return True
    if _SIGNS.search(signs) is None:
        return False
    begin = _begin_sentence(line)
    sentence = line[begin:]
    if begin and _HEADING.fullmatch(sentence) is not None:
        return True
    phrase = _CLOSING.search(sentence) or _CLOSING_CJK.search(sentence)
    if phrase is not None:
        return _LOOKING.search(sentence) is None and not _is_quoted(sentence[: phrase.start()], signs)
    if _COLON.search(signs) is None:
        return False
    return _SUPPOSING.match(sentence) is not None and _ACTING.search(sentence) is None


def is_doubtful(text: str) -> bool:
    """Whether a call behind this text is more likely shown than meant.

    Parameters: ``text`` is the text before a call.
    Returns: True if the call counts only at the end of the answer.
    """
    text = _fold(text[-TAIL_SIZE:])
    if not text.strip():
        return False
    if _is_quoting(text):
        return True
    sentence, signs = _take_last_sentence(text)
    if doubts.WAITS_FOR in sentence and doubts.WAITS.search(sentence) is not None:
        return True
    if doubts.QUESTION.search(signs) is not None:
        return doubts.ASKS.search(sentence) is not None
    colon = doubts.POINTS.search(signs) is not None
    if colon and doubts.TELLS.search(sentence) is not None:
        return True
    unfinished = doubts.UNFINISHED.search(text, len(text) - 2) is not None or (sentence + signs).count('"') % 2 == 1
    if not (unfinished or _points_at_shown(sentence, signs, colon)):
        return False
    return _STATES.search(sentence) is None and doubts.NEXT.search(sentence) is None


def _is_quoting(text: str) -> bool:
    """Whether the end of a text is the prefix of a quotation, or inside a string or an element that is no wrapper."""
    if _has_prefix(text) or len(doubts.STRING.findall(text)) % 2:
        return True
    element = doubts.ELEMENT.search(text)
    return element is not None and doubts.OWN.search(element[1]) is None


def _points_at_shown(sentence: str, signs: str, colon: bool) -> bool:
    """Whether a sentence points at what follows it, and has words of what is shown."""
    if colon and doubts.LABEL.search(sentence) is not None:
        return True
    points = colon or not signs.strip() or doubts.REFERS.search(sentence) is not None
    return points and doubts.DOUBT.search(sentence) is not None


def _has_prefix(text: str) -> bool:
    """Whether a text ends with a bracket, a quotation mark, an indentation of code or the prefix of a line."""
    if text[-1] in doubts.QUOTES or text.rstrip()[-1] == doubts.BRACKET:
        return True
    line = text.rpartition("\n")[2]
    if doubts.LINE_PREFIX.match(line) is not None:
        return True
    return line.isspace() and doubts.INDENTED.search(text) is not None


def _take_last_sentence(text: str) -> tuple[str, str]:
    """The last sentence of a text, and the punctuation behind it."""
    written, signs = _split(text)
    line = written.rpartition("\n")[2]
    return line[_begin_sentence(line) :], signs


def _is_quoted(before: str, behind: str) -> bool:
    """Whether a phrase is in quotes: then it is only mentioned and introduces nothing."""
    return before[-1:] in _QUOTES and behind[:1] in _QUOTES[before[-1:]]


def _fold(text: str) -> str:
    """A text in lower case, as long as before: the only letter that becomes two is that of Turkish."""
    return text.replace("İ", "i").lower()


def _split(text: str) -> tuple[str, str]:
    found = _WRITTEN.match(text)
    written = found[0] if found is not None else ""
    return written, text[len(written) :]


def _begin_sentence(line: str) -> int:
    """Where the last sentence of a line begins."""
    start = 0
    for found in _SENTENCE_END.finditer(line):
        if not line[: found.start() + 1].endswith(("e.g.", "i.e.", "z.", "b.")):
            start = found.end()
    return start


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


_MARKS = ("<", "[", "{")


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
