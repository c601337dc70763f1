"""Reads call blocks: stretches of text that may hold calls, from opener to closer.

Strategy. A wrapper announces calls, a header announces a call to one tool. Inside a marked wrapper any header counts,
whichever dialect it belongs to; wrapper, header and the first character of the body select the codec. Noise between
calls (separators, doubled wrappers, a fence around the body) is skipped.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from toolglot.core.events import CallRejected, Defect, Reason
from toolglot.core.options import Element, ElementCalls, Options
from toolglot.core.schema.toolset import CompiledTool, CompiledTools
from toolglot.dialects.event_buffer import EventBuffer
from toolglot.dialects.partial_call import AnswerState, CallBlock
from toolglot.dialects.patterns import MORE, Mark, MarkIndex, mark
from toolglot.dialects.scanner import Source, Steps
from toolglot.dialects.spec import CallSyntax, Commitment, Wrap
from toolglot.reading.dialect_index import CLOSED_ELEMENT, ELEMENT, ELEMENTS, DialectIndex, Header, Selection
from toolglot.reading.example_detection import announces_example, introduces_call
from toolglot.reading.near_misses import (
    MAX_ELEMENT,
    find_defects,
    is_near_miss,
    is_python_call,
    match_child,
    may_begin_child,
    skip_closers,
)

_LACKING = (
    Defect(reason=Reason.MISSING_ARGUMENT, where="call", found="too little", expected="all that the client needs"),
)
_NOISE = Mark("```{language}\n", "```{language} ", "json\n", "</think>", "<?xml{attributes}?>", named=False)
_COMMENT = Mark("{one_comment}", named=False)
_FENCE_END = ("```",)
_LINE_END = Mark("{before_break}", named=False)
_SENTENCE = Mark("{before_sentence}", named=False)
_THINKING_END = Mark("</think>", named=False)
_NEXT_LIST = Mark("] , [", "] ; [", named=False)
_MAX_NOISE = 8

MAX_RESCAN = 4096
"""A block that fails after this many characters is text as a whole; a shorter one is scanned again."""

RESCAN_FACTOR = 4
"""How many times an answer may be rescanned, a short one somewhat more; then every failed block is text."""

_SEPARATORS = frozenset(",;]})")


def consume_mark(source: Source, templates: tuple[str, ...]) -> int:
    """Consume a mark that is known to be here; return its length."""
    found = mark(templates).match(source.text, source.pos)
    size = found.end() - source.pos if found is not None else 0
    source.pos += size
    return size


class CallBlockReader(Struct, eq=False):
    """Reads the call blocks of one answer."""

    source: Source
    buffer: EventBuffer
    dialects: DialectIndex
    tools: CompiledTools
    options: Options
    answer: AnswerState
    elements: MarkIndex | None
    hint: str = ""
    block: CallBlock | None = None
    """The block that is being read."""
    reached: int = 0
    skipped_noise: int = 0
    """How many characters of ``reached`` were known noise."""
    near_miss_end: int = 0
    """Where the last near miss ended, as far as it was read."""
    rescanned: int = 0
    """How many characters were rescanned so far."""
    rejected_length: int = 0
    """How many characters the client's own parser read in vain."""
    noise: list[int] = []
    """Positions of skipped noise in order, and the position after the last one.

    A failed block is scanned again after its first character; the known noise is not searched again.
    """

    def begin(
        self, wrap: Wrap | None, waits: Callable[[], bool], at_line: bool, introduced: Callable[[], bool]
    ) -> CallBlock:
        """Begin a block that opens here."""
        start = self.reached = self.source.keep()
        self.skipped_noise = 0
        parts = (self.source, self.buffer, self.tools, self.options, self.answer)
        closing, first = self.dialects.closing(wrap), not self.buffer.text_emitted
        self.block = CallBlock(*parts, start, closing, waits, at_line, introduced, first)
        return self.block

    def read(self, block: CallBlock, wrap: Wrap | None, header: Header) -> Steps[bool]:
        """Read the calls of a block; whether all of it is well-formed."""
        return self._chain(block, header) if wrap is None else self._section(block, wrap)

    def end(self, block: CallBlock, taken: bool) -> bool:
        """End a block; whether it holds a call, as far as it was read."""
        source = self.source
        self.block = None
        if not taken and not block.has_started and not block.calls:
            self.reached = max(self.reached, source.here)
            return False
        block.close_call()
        if block.calls and block.is_text:
            source.rewind(block.calls[-1].end)  # what follows it was read in search of another call
        block.raw = source.since(block.start) if block.held else None
        return True

    def may_read_again(self, start: int) -> bool:
        """Whether the failed block that began at ``start`` may be scanned again."""
        size = self.reached - start
        rescanned = self.rescanned + size - self.skipped_noise
        if size >= MAX_RESCAN or rescanned > RESCAN_FACTOR * (start + 4 * MAX_RESCAN):
            return False
        self.rescanned = rescanned
        return True

    def is_aside(self, tag: str) -> bool:
        """Whether this reasoning tag stays in the text, because the client looks for it there."""
        client = self.options.elements
        return client is not None and tag.strip("</>") in client.reasoning_tags

    # -- failed blocks -------------------------------------------------------------------------------------------------

    def report_miss(self, block: CallBlock, wrap: Wrap | None, header: Header) -> Steps[bool]:
        """Count a failed block if it was meant as a call; True if it was rejected, so that none of it is text."""
        source, start, reached = self.source, block.start, self.reached
        behind = max(0, reached - source.offset)
        following = source.text[behind : behind + 80]
        read = source.since(start, reached)
        if start < self.near_miss_end:
            return False
        if block.incomplete_element is not None and block.known_tool is not None:
            end, given = block.incomplete_element
            return self._reject(block, block.known_tool, end, block.known_tool.missing(given) or _LACKING)
        if block.alone and block.known_tool is not None and is_python_call(read):
            if not (yield from self._ends_answer(reached)):
                return False
        elif not is_near_miss(block, wrap, header, read, following):
            return False
        if header == ELEMENT and wrap is None and (yield from self._reject_element(block)):
            return True
        block.add_near_miss(block.last_call, read)
        self.near_miss_end = reached
        return False

    def _ends_answer(self, reached: int) -> Steps[bool]:
        """Whether nothing but closing marks follows this position."""
        source, size = self.source, 0
        source.rewind(reached)
        while True:
            size = skip_closers(source.text, source.pos + size) - source.pos
            if source.pos + size < len(source.text) or size > MAX_ELEMENT:
                return False
            if source.final:
                return True
            yield

    def _reject_element(self, block: CallBlock) -> Steps[bool]:
        """Reject an element of a tool that holds only elements and lacks required arguments. None of it was emitted,
        because its first child is no parameter of the tool; False if it is anything else."""
        source, tool = self.source, block.known_tool
        if tool is None or self.options.unknown_tools == "text":
            return False
        source.rewind(block.start)
        size = source.text.find(">", source.pos) + 1 - source.pos
        while (child := match_child(source.text, source.pos + size)) is None:
            if source.final or not may_begin_child(source.text, source.pos + size):
                return False
            yield
        if self.tools.find(child["key"]) is not None:
            return False
        closer = f"</{source.text[source.pos + 1 : source.pos + size - 1]}>"
        while (end := source.text.find(closer, source.pos + size, source.pos + MAX_ELEMENT)) < 0:
            if source.final or len(source.text) - source.pos >= MAX_ELEMENT:
                return False
            yield
        defects = find_defects(tool, source.text[source.pos + size : end])
        if not defects:
            return False
        return self._reject(block, tool, source.offset + end + len(closer), defects)

    def _reject(self, block: CallBlock, tool: CompiledTool, end: int, defects: tuple[Defect, ...]) -> bool:
        """Report a block that ends at ``end`` as a rejected call."""
        source = self.source
        source.rewind(end)
        raw, span = source.since(block.start), (block.start, end)
        source.release()
        self.buffer.release_whitespace()
        self.buffer.add_event(CallRejected(raw, defects[0].reason, tool.name, defects, block.dialect, span))
        return True

    # -- reading a block -----------------------------------------------------------------------------------------------

    def _chain(self, block: CallBlock, header: Header) -> Steps[bool]:
        """Read calls without a wrapper, one after the other with a separator between them."""
        source = self.source
        calls = 0
        here, before = source.here, block.open_call
        while (body := (yield from self._prepare(block, None, header))) is not None and (yield from body):
            calls += 1
            yield from self._end_body(block, may_close=False)
            gap = yield from source.find_nonblank()
            if source.text[source.pos + gap : source.pos + gap + 1] not in (",", ";"):
                return True
            next_call = yield from source.find_nonblank(gap + 1)
            if (yield from source.look(mark((header,)), next_call)) is None:
                # the separator ends a statement, and nothing follows it
                over = block.alone and (yield from source.look(_LINE_END, gap + 1)) is not None
                source.pos += gap + 1 if over else 0
                return True
            here, before = source.here, block.open_call
            source.pos += next_call
        block.discard_after(before)
        if calls:
            self._rewind(here)
        return calls > 0

    def _rewind(self, here: int) -> None:
        self.reached = max(self.reached, self.source.here)
        self.source.rewind(here)

    def _section(self, block: CallBlock, wrap: Wrap) -> Steps[bool]:
        """Read the calls inside a wrapper."""
        source = self.source
        consume_mark(source, wrap.open)
        calls = 0
        noise = (yield from self._pass_known_noise(wrap)) if self.noise else 0
        while True:
            head = yield from source.skip_blanks()
            if calls and (yield from self._is_closed(wrap)):
                return (yield from self._is_whole(block, wrap))
            if head == "#" and (yield from self._skip_remark(wrap)):
                continue
            here, before = source.offset + source.pos, block.open_call
            header = yield from self._find_header(block, wrap, calls)
            body = (yield from self._prepare(block, wrap, header)) if header is not None else None
            if body is not None and (yield from body):
                calls += 1
                yield from self._end_body(block, may_close=bool(wrap.close))
                continue
            block.discard_after(before)
            self._rewind(here)
            if calls and head in _SEPARATORS:
                source.pos += 1
                continue
            may_be_noise = wrap.commitment is Commitment.MARKED and noise < _MAX_NOISE
            if may_be_noise and (yield from self._skip_noise(calls, header is None)):
                noise += 1
                continue
            return (yield from self._end_open(block, wrap, calls))

    def _skip_remark(self, wrap: Wrap) -> Steps[bool]:
        """Skip a comment between calls in a fence; False if it is about calls in general."""
        source = self.source
        start = source.here
        if wrap.close != _FENCE_END or (yield from source.match(_COMMENT)) is None:
            return False
        remark = source.since(start).strip() + ":"
        if introduces_call(remark) and not announces_example(remark):
            return True
        self._rewind(start)
        return False

    def _end_open(self, block: CallBlock, wrap: Wrap, calls: int) -> Steps[bool]:
        """End calls whose wrapper has no closing mark."""
        if wrap.commitment in (Commitment.WHOLE, Commitment.ALONE):
            ended = calls > 0 and (yield from self._ends_line(block))
            if not ended or wrap.commitment is Commitment.WHOLE:
                return ended and not (block.alone and wrap.close)
        if wrap.close and block.open_call is not None:
            block.open_call.repair("missing_closer")
        return calls > 0

    def _is_whole(self, block: CallBlock, wrap: Wrap) -> Steps[bool]:
        """Whether a closed list that counts only as a whole ends its line; all of its calls must be sound."""
        if wrap.commitment is not Commitment.WHOLE:
            return True
        if block.is_complete or not block.calls or block.has_started:
            return (yield from self._ends_line(block, _SENTENCE))
        block.clear()
        return False

    def _ends_line(self, block: CallBlock, also: Mark | None = None) -> Steps[bool]:
        """Whether the line ends here, as it must for a whole; ``also`` may follow a block that begins the answer."""
        if (yield from self.source.look(_LINE_END)) is not None:
            considered = yield from self._was_considered()
            if considered:
                block.clear()
            return not considered
        for behind in (self.dialects.leftovers, self.dialects.results):
            if (yield from self.source.choose(behind)) is not None:
                return True
        if also is not None and block.is_introduced() and (yield from self.source.look(also)) is not None:
            return True
        block.clear()
        return False

    def _was_considered(self) -> Steps[bool]:
        """Whether thinking that began in the prompt ends on the next line, and an answer follows."""
        gap = yield from self.source.find_nonblank()
        if (found := (yield from self.source.look(_THINKING_END, gap))) is None:
            return False
        gap = yield from self.source.find_nonblank(found.end() - self.source.pos)
        return self.source.pos + gap < len(self.source.text)

    def _skip_noise(self, calls: int, alone: bool) -> Steps[bool]:
        """Skip a wrapper inside the wrapper, or a fence around the body."""
        source = self.source
        here, wraps = source.here, self.dialects.wraps
        index = yield from source.choose(wraps.choice)
        if index is not None and not calls:
            consume_mark(source, wraps.entries[index].open)
        elif (yield from source.match(_NOISE)) is None:
            return False
        yield from source.skip_blanks()
        if not alone or calls:
            self.noise.clear()
        elif not self.noise or self.noise[-1] != here:
            self.noise = [here]
        self.noise.append(source.here)
        return True

    def _pass_known_noise(self, wrap: Wrap) -> Steps[int]:
        """Skip noise that an earlier block found here; return how many items."""
        source, known = self.source, self.noise
        yield from source.skip_blanks()
        if wrap.commitment is not Commitment.MARKED or source.here not in known:
            return 0
        del known[: known.index(source.here)]
        self.skipped_noise = known[-1] - source.here
        source.pos += self.skipped_noise
        return len(known) - 1

    def _is_closed(self, wrap: Wrap) -> Steps[bool]:
        """Whether the closing mark is here, a part of it at the end of the text, or the opener in its place. Between
        two lists it is a separator, which is skipped."""
        source = self.source
        if wrap.commitment is Commitment.WHOLE and (yield from source.match(_NEXT_LIST)) is not None:
            return False
        if wrap.close and (yield from source.match(mark(wrap.close))) is not None:
            return True
        if source.final and wrap.close and mark(wrap.close).begins(source.text, source.pos):
            source.pos = len(source.text)
            return True
        found = yield from source.look(mark(wrap.open))
        if found is None or wrap.commitment is not Commitment.MARKED:
            return False
        size = found.end() - source.pos
        gap = yield from source.find_nonblank(size)
        if source.pos + gap < len(source.text):
            return False
        source.pos += size
        return True

    def _find_header(self, block: CallBlock, wrap: Wrap, calls: int) -> Steps[Header | None]:
        """The header here, inside a wrapper."""
        source, headers = self.source, self.dialects.inside(wrap)
        while (index := headers.choice.at(source.text, source.pos, source.final)) is MORE:
            yield
        if index is not None:
            header = headers.entries[index]
            # a bare name matches almost any text: after another call it counts only if that one began like this too
            loose = calls and header.startswith("{name") and header not in block.headers
            return None if loose else header
        element = (yield from source.look(self.elements)) if self.elements is not None else None
        if element is None:
            return None
        return CLOSED_ELEMENT if element[0].endswith("/>") else ELEMENT

    def _prepare(self, block: CallBlock, wrap: Wrap | None, header: Header) -> Steps[Steps[bool] | None]:
        """The steps that read the call whose header is here; None if no dialect has it."""
        source = self.source
        spelled = mark((header,))
        found = spelled.match(source.text, source.pos)
        if found is None:
            return None
        gap = yield from source.find_nonblank(found.end() - source.pos)
        head = source.text[source.pos + gap : source.pos + gap + 1]
        chosen = self.dialects.select(wrap, header, head, self.hint)
        if found.string is not source.text:  # more has arrived meanwhile
            found = spelled.match(source.text, source.pos)
        if chosen is None or found is None:
            return None
        if chosen.dialect.commitment is Commitment.ALONE and not block.require_alone():
            return None
        block.header_start = source.offset + source.pos
        block.at_line = self._is_apart(block, header)
        block.dialect = chosen.dialect.name
        block.headers = chosen.syntax.header
        block.confidence = self._confidence_of(chosen)
        block.repairs = chosen.repairs
        unknown = header in ELEMENTS and self.tools.find(found["name"]) is None
        block.marked = chosen.marked or (unknown and self.options.unknown_tools == "reject")
        block.wrap_open, block.wrap_close = (wrap.open, wrap.close) if wrap is not None else ((), ())
        if self.options.elements is None or header != ELEMENT or unknown:
            return chosen.syntax.body.read(block, chosen.syntax, found)
        return self._read_element(block, chosen.syntax, spelled, self.options.elements)

    def _is_apart(self, block: CallBlock, header: Header) -> bool:
        """Whether the call is no part of a sentence; a mark on a line of its own behind its wrapper is none."""
        named = header.startswith("{name")
        return block.at_line or (not named and "\n" in self.source.since(block.start, block.header_start))

    def _read_element(self, block: CallBlock, syntax: CallSyntax, opener: Mark, elements: ElementCalls) -> Steps[bool]:
        """Read a call as the client's own parser does. If the client would not accept it, use the codec; if that fails
        too, deliver it as the client reads it, so that the client reports the error."""
        source, here = self.source, self.source.here
        found = opener.match(source.text, source.pos)
        if found is None:
            return False
        name = found["name"]
        element = yield from self._find_element(name, found.end() - source.pos, elements)
        end = source.here
        if element is None or not element.is_valid:
            self.rejected_length += end - here
            source.rewind(here)
            found, before = opener.match(source.text, source.pos), block.open_call
            if found is not None and (yield from syntax.body.read(block, syntax, found)):
                return True
            if element is None or block.has_started:
                return False
            block.discard_after(before)
            if element.is_incomplete:
                block.incomplete_element = (end, tuple(element.values))
                return False
            source.rewind(end)
        call = block.begin(name)
        if call is not None:
            call.add_client_values(element.values)
        return call is not None

    def _find_element(self, name: str, size: int, elements: ElementCalls) -> Steps[Element | None]:
        """Consume the call that the client reads here; None if it reads none.

        Args:
            size: the length of the opening tag.
        """
        source, here = self.source, self.source.here
        boundary = elements.open(name)
        head = yield from source.find_nonblank(size)
        mentioned = not source.text.startswith("<", source.pos + head)
        if boundary is None or mentioned or self.rejected_length > RESCAN_FACTOR * (here + 4 * MAX_RESCAN):
            return None
        source.pos += size
        while (used := boundary.feed(source.text[source.pos :])) < 0:
            source.pos = len(source.text)
            if source.final:
                return None
            yield
        source.pos += used
        return elements.read(source.since(here))

    def _confidence_of(self, chosen: Selection) -> float:
        """The confidence of a call: that of its dialect, or of the dialect's pattern."""
        dialect, confidences = chosen.dialect, self.options.patterns.confidences
        return dialect.confidence if chosen.marked else confidences.get(dialect.name, dialect.confidence)

    def _end_body(self, block: CallBlock, may_close: bool) -> Steps[None]:
        """End the body of a call. If no mark closes its block, the call ends here."""
        block.body_end = self.source.here
        yield from self._skip_broken(block)
        if not may_close:
            block.close_call()

    def _skip_broken(self, block: CallBlock) -> Steps[None]:
        """Skip the rest of a malformed call, up to the mark that closes it."""
        call = block.open_call
        if call is None or not call.defects or not any(flaw.reason is Reason.MALFORMED for flaw in call.defects):
            return
        source, closing = self.source, block.closing
        while not source.at_end:
            if source.pos >= len(source.text):
                yield
            elif (yield from source.choose(closing)) is not None:
                return
            else:
                source.pos += 1
