"""The state machine of the reader: splits an answer into text, reasoning and calls.

Strategy. Ordinary text is emitted at once. The machine stops only at characters that can begin a mark, checks for one
(yes, no, or wait for more text), and tries to read a block of calls. If the block is no call, the machine rewinds and
emits its first character as text, so nothing is lost. Quoted marks are not executed: inline code, code fences and JSON
that is an answer are text.

Progress. ``run`` drives all steps. If they make no progress, which is a bug in the reader, ``run`` reads no further
calls: what is undecided and the rest of the answer become text, and the answer is recorded as a near miss.
"""

from __future__ import annotations

import re
from functools import partial

from toolglot.core.events import Event, NearMiss, TextDelta
from toolglot.core.options import Options
from toolglot.core.schema.toolset import CompiledTools
from toolglot.dialects.event_buffer import EventBuffer, VisibleText
from toolglot.dialects.partial_call import AnswerState, CallBlock
from toolglot.dialects.patterns import MarkIndex, mark
from toolglot.dialects.scanner import NoProgress, Source, Steps, at_once
from toolglot.dialects.spec import Channel, Commitment, Position, Region, Wrap
from toolglot.reading.call_blocks import CallBlockReader, consume_mark
from toolglot.reading.deferred_calls import DeferredCalls
from toolglot.reading.dialect_index import (
    AMBIGUOUS,
    BARE_JSON,
    CLOSED_ELEMENT,
    ELEMENT,
    STRAY_THINKING,
    DialectIndex,
    Header,
    Opening,
    Openings,
    T,
)
from toolglot.reading.example_detection import (
    CodeSpans,
    announces_example,
    hands_over,
    introduces_call,
    is_doubtful,
    is_shown,
)
from toolglot.reading.fabricated_results import drop_to_end, has_content
from toolglot.reading.open_elements import OpenElements

_LIST_ITEM = re.compile(r"(?:\A|\n)[ \t]*(?:[-*+>]|\d+[.)])[ \t]+\Z")
_INDENT = (" ", "\t")
_BLANKS = re.compile(r"\s+")
_JSON_STOPS = re.compile(r'["{}\[\]\\\n]')
_CODE_STOPS = re.compile("[\n`]")


class StateMachine:
    """Reads one answer."""

    def __init__(
        self, dialects: DialectIndex, tools: CompiledTools, options: Options, answer: AnswerState, hint: str = ""
    ) -> None:
        self.dialects = dialects
        self.answer = answer
        self.source = Source()
        self.buffer = EventBuffer()
        self.shown = VisibleText()
        self.open_elements = OpenElements(self.shown.take_new, tools.find)
        self.deferred = DeferredCalls(self.buffer, self.shown.keep)
        marks = dialects.marks_for_tools(tools.names, options.unknown_tools == "reject")
        self.names, self.elements, self.heads, self.stops, self.line_stops = marks
        self.blocks = CallBlockReader(self.source, self.buffer, dialects, tools, options, answer, self.elements, hint)
        self.region: Region | None = None
        self.thinking = False
        self.code = CodeSpans()
        self.line_start = True
        self.after_call = False
        self.is_example = self.is_doubtful = self.in_sentence = False
        self.marked_block = ""
        """The text of the last block of calls in marks."""
        self.remember = self.shown.add

    # -- text ----------------------------------------------------------------------------------------------------------

    def emit_text(self, piece: str) -> None:
        """Emit text that is not part of a call."""
        self.after_call = False
        if self.deferred.blocks:
            if not self.thinking and self.deferred.hold(piece):
                self.remember(piece)
                return
            self.deferred.end_before(piece)
        if self.thinking:
            self.buffer.add_reasoning(piece)
        else:
            self.buffer.add_text(piece)
            self.remember(piece)

    def pass_text_chunk(self, piece: str) -> list[Event] | None:
        """Fast path: emit a chunk without stops, in the middle of a line, as text; None if it has a stop."""
        if self.stops.search(piece) is not None:
            return None
        self.remember(piece)
        return [TextDelta(piece)]

    def pass_reasoning_chunk(self, piece: str) -> list[Event] | None:
        return None if self.stops.search(piece) is not None else [self.buffer.make_reasoning_event(piece)]

    def emit_text_up_to(self, end: int) -> None:
        source = self.source
        if end > source.pos:
            piece = source.text[source.pos : end]
            source.pos = end
            self.emit_text(piece)

    def pass_whitespace(self, piece: str) -> None:
        """Hold whitespace after a line break: dropped before a call, text otherwise."""
        if self.deferred:
            self.deferred.append(piece)
            if self.deferred.holds_text:
                self.remember(piece)
        elif self.thinking:
            self.buffer.add_reasoning(piece)
        else:
            self.buffer.hold_whitespace(piece)
            self.remember(piece)

    def run(self) -> Steps[None]:
        """Read the answer up to its end."""
        try:
            if not self.answer.is_stuck:
                yield from self.read_answer()
        except NoProgress:
            self.stop_reading()
        if self.answer.is_stuck:
            yield from self.pass_rest()
        self.buffer.finish()

    def read_answer(self) -> Steps[None]:
        source = self.source
        ahead = 0
        while not (source.final and source.pos >= len(source.text)):
            source.step()
            if not self.line_start or source.pos == len(source.text):
                yield from self.pass_text(ahead)
            ahead = (yield from self.inspect()) if source.pos < len(source.text) else 0
        if self.deferred.blocks:
            self.deferred.end(source.truncated)

    def stop_reading(self) -> None:
        """Give up reading calls: end the call whose start was emitted, and go back to the first undecided character."""
        source, block = self.source, self.blocks.block
        self.answer.is_stuck = True
        self.answer.near_misses.append(NearMiss(block.dialect if block is not None else ""))
        if not source.abandon():
            return
        if block is None or not block.has_started:
            source.rewind(source.unread)
        elif block.open_call is not None:
            block.open_call.truncate()
            block.close_call()
        source.release()

    def pass_rest(self) -> Steps[None]:
        """Emit the rest of the answer as text, or as reasoning if the answer has not left it."""
        source = self.source
        if self.deferred.blocks:
            self.deferred.discard()
        while True:
            self.emit_text_up_to(len(source.text))
            if source.final:
                return
            yield

    def pass_text(self, ahead: int) -> Steps[None]:
        """Emit text up to the next stop, which is searched ``ahead`` characters from here."""
        source = self.source
        while not (self.line_start and source.pos < len(source.text)):
            stops = self.current_stops() if self.code.fences or self.code.inline else self.stops
            found = stops.search(source.text, source.pos + ahead)
            ahead = 0
            self.emit_text_up_to(len(source.text) if found is None else found.start())
            if found is not None or source.final:
                return
            if stops is self.stops and not self.line_start and not self.deferred.blocks:
                source.run = self.pass_reasoning_chunk if self.thinking else self.pass_text_chunk
            yield
            source.run = None

    def current_stops(self) -> re.Pattern[str]:
        """The stops that apply here; inside code few do."""
        if self.region is None:
            return _CODE_STOPS
        return self.line_stops if self.code.inline else self.stops

    def inspect(self) -> Steps[int]:
        """Process the stop found here; return how many characters of it are text."""
        source = self.source
        head = source.text[source.pos]
        if head == "\n" or (self.line_start and head.isspace()):
            self.pass_line_end()
        elif self.region is not None and (yield from self.close_region(self.region)):
            pass
        elif head == "`" or (head == "~" and self.line_start):
            yield from self.pass_backticks()
        elif (
            self.code.fences
            or self.code.inline
            or not (self.heads.match(source.text, source.pos) or self.may_begin_answer())
            or not (yield from self.try_open())
        ):
            self.line_start = False
            return 1
        return 0

    def may_begin_answer(self) -> bool:
        """Whether something may open here that opens only at the beginning of an answer."""
        source, choice = self.source, self.dialects.at_start.choice
        return not (self.shown.tail or self.thinking) and choice.at(source.text, source.pos, source.final) is not None

    def pass_line_end(self) -> None:
        """Consume whitespace at the end, or the start, of a line."""
        source = self.source
        start = source.pos
        found = _BLANKS.match(source.text, start)
        source.pos = found.end() if found is not None else start
        blanks = source.text[start : source.pos]
        if "\n" in blanks:
            self.code.end_line(paragraph=self.line_start or blanks.count("\n") > 1)
            self.line_start = True
            if self.deferred.in_sentence:
                self.deferred.end_sentence(blanks)
        self.pass_whitespace(blanks)

    def emit_all_as_text(self, text: str) -> list[Event]:
        """Emit everything pending as text; ``text`` is all the text that was fed."""
        if self.answer.first_call is not None:
            blanks, start = self.answer.first_call
            self.buffer.drop_whitespace()
            self.buffer.add_text(blanks + text[start:])
        else:
            if self.deferred.blocks:
                self.deferred.discard()
            add = self.buffer.add_reasoning if self.thinking else self.buffer.add_text
            add(text[self.source.unread :])
        return self.buffer.drain()

    # -- code and JSON that is text ------------------------------------------------------------------------------------

    def pass_backticks(self) -> Steps[None]:
        """Process a run of backticks or tildes, which opens or closes a fence or inline code."""
        source = self.source
        ticks = yield from source.peek_run(source.text[source.pos])
        is_fence = len(ticks) >= 3 and (self.line_start or _LIST_ITEM.search(self.shown.tail) is not None)
        if (is_fence or not self.shown.tail) and not self.code.fences and (yield from self.try_open()):
            return
        label = (yield from source.peek(len(ticks) + 1))[len(ticks) :]
        source.pos += len(ticks)
        if is_fence:
            self.code.pass_fence(ticks, label)
        else:
            self.code.pass_ticks(ticks, label)
        self.emit_text(ticks)
        self.line_start = False

    def pass_json(self) -> Steps[None]:
        """Emit JSON that is an answer as text, up to its last bracket or the end of the paragraph."""
        source = self.source
        depth, quoted, line_end = 0, False, -1
        while head := (yield from source.scan(_JSON_STOPS, self.emit_text)):
            self.emit_text(source.take(1))
            if head == "\\":
                yield from source.peek()
                self.emit_text(source.take(1))
            elif head == '"':
                quoted = not quoted
            elif head == "\n":
                if line_end == source.here - 1:
                    break
                line_end = source.here
            elif not quoted:
                depth += 1 if head in "{[" else -1
                if depth <= 0:
                    break
        self.line_start = False

    def separate_messages(self, channel: Channel = Channel.TEXT) -> None:
        """Keep the texts outside and inside a message apart if only marks are between them."""
        if self.deferred.in_sentence:
            self.deferred.end_sentence()
        if channel is not Channel.REASONING and self.shown.tail and not self.shown.tail[-1].isspace():
            self.buffer.end_message()

    # -- marks ---------------------------------------------------------------------------------------------------------

    def close_region(self, region: Region) -> Steps[bool]:
        source = self.source
        start = source.here
        found = (yield from source.match(mark(region.close))) if region.close else None
        if found is None:
            return False
        self.separate_messages(region.channel)
        self.deferred.close(found[0])
        if region.channel is Channel.MESSAGE:
            self.shown.tail = ""  # a message that has ended introduces nothing
            self.open_elements.clear()
        self.region, self.thinking = None, False
        self.code.clear()
        self.line_start = source.here > start
        return True

    def try_open(self) -> Steps[bool]:
        """Try everything that may open here; True if something was consumed."""
        if self.region is not None and self.region.channel is Channel.MESSAGE:
            return (yield from self.open_anywhere(self.dialects.frames[self.region].openings))
        if (self.after_call or self.deferred.blocks or self.answer.delivered) and (yield from self.skip_after_call()):
            return True
        if (yield from self.open_anywhere(self.dialects.anywhere)):
            return True
        if (self.line_start or self.may_open_list()) and (yield from self.open_at_line_start()):
            return True
        lone = self.dialects.lone_heads.match(self.source.text, self.source.pos)
        if lone and ((yield from self.skip_stray_thinking_end()) or (yield from self.skip_turn_mark())):
            return True
        return self.elements is not None and (yield from self.open_element(self.elements))

    def open_anywhere(self, openings: Openings[Opening]) -> Steps[bool]:
        """Read what may open at any position."""
        opening = yield from self.find_opening(openings)
        return opening is not None and (yield from self.open_at(opening))

    def open_element(self, elements: MarkIndex) -> Steps[bool]:
        """Read an element that is named after a tool."""
        element = yield from self.source.look(elements)
        if element is None:
            return False
        if not element[0].endswith("/>"):
            return (yield from self.open_block(None, ELEMENT))
        at_line = self.line_start and self.shown.tail[-1:] not in _INDENT
        return at_line and (yield from self.open_block(None, CLOSED_ELEMENT))

    def skip_stray_thinking_end(self) -> Steps[bool]:
        """Skip the end of thinking that began in the prompt. After a space it is part of a sentence about the mark."""
        in_sentence = self.region is not None or (self.shown.tail[-1:] in _INDENT and not self.line_start)
        found = None if in_sentence else (yield from self.source.look(STRAY_THINKING))
        if found is None or self.blocks.is_aside(found[0]):
            return False
        self.source.pos += len(found[0])
        self.buffer.skip_mark(found[0])
        self.separate_messages()
        self.line_start = True
        return True

    def skip_turn_mark(self) -> Steps[bool]:
        """Skip a mark that ends a turn, or begins one of the model's own: dropped before a call, text otherwise. After
        a space it is part of a sentence about the mark."""
        source, turns = self.source, self.dialects.turns
        in_sentence = self.shown.tail[-1:] in _INDENT and not self.line_start
        pending = bool(self.deferred.blocks) and not self.deferred.in_sentence
        if in_sentence or self.thinking or pending or (yield from source.choose(turns)) is None:
            return False
        self.deferred.end_sentence()
        size = consume_mark(source, turns.marks[0])
        self.buffer.hold_whitespace(source.text[source.pos - size : source.pos])
        self.after_call = False
        self.line_start = True
        return True

    def open_at_line_start(self) -> Steps[bool]:
        """Read what may open only at the start of a line, or a list of calls that the text introduces."""
        if not (self.line_start or (yield from self.is_call_list())):
            return False
        opening = yield from self.find_opening(self.dialects.at_line)
        if opening is not None and (yield from self.open_at(opening)):
            return True
        if not self.shown.tail and (label := (yield from self.find_opening(self.dialects.at_start))) is not None:
            return (yield from self.open_at(label))
        if self.names is None or (yield from self.source.look(self.names)) is None:
            return False
        opening = yield from self.find_opening(self.dialects.named)
        return opening is not None and (yield from self.open_at(opening))

    def may_open_list(self) -> bool:
        return self.names is not None and self.source.text[self.source.pos] == "["

    def is_call_list(self) -> Steps[bool]:
        """Whether a list of calls begins here, on the same line as the text that introduces it."""
        if self.names is None or not self.is_introduced():
            return False
        return (yield from self.source.look(self.names, 1)) is not None

    def skip_after_call(self) -> Steps[bool]:
        """Skip what may follow a call and is no answer: stray marks and fabricated results."""
        source, dialects = self.source, self.dialects
        after = self.after_call or (self.deferred and not self.deferred.between)
        if after and (yield from source.choose(dialects.leftovers)) is not None:
            self.skip_leftover()
            return True
        if self.thinking or self.deferred.reasoning or not self.line_start:
            return False
        result = yield from source.choose(dialects.results)
        if result is None or (yield from source.choose(dialects.turns)) is not None:
            return False
        if self.deferred.undecided and (yield from has_content(self.source, mark(dialects.results.marks[0]))):
            self.deferred.discard()  # a quoted call with its result is a quoted conversation
            return False
        yield from self.drop_fabricated_result()
        return True

    def find_opening(self, openings: Openings[T]) -> Steps[T | None]:
        index = yield from self.source.choose(openings.choice)
        return None if index is None else openings.entries[index]

    def open_at(self, opening: Opening) -> Steps[bool]:
        """Read what opens here; False if it is something else and nothing was consumed."""
        if isinstance(opening, Region):
            frame = self.dialects.frames.get(self.region) if self.region is not None else None
            return at_once(False) if frame and opening not in frame.regions else self.enter_region(opening)
        if self.commitment_of(opening) is Commitment.ALONE and not self.is_introduced():
            return at_once(False)
        return self.open_block(opening, "") if isinstance(opening, Wrap) else self.open_block(None, opening)

    def commitment_of(self, opening: Wrap | Header) -> Commitment:
        return opening.commitment if isinstance(opening, Wrap) else self.dialects.commitment(opening)

    def is_introduced(self) -> bool:
        """Whether the text before this position is empty or does no more than introduce a call."""
        indented = bool(self.shown.tail.strip()) and self.line_start and self.shown.tail[-1:] in _INDENT
        answered = self.region is not None or self.answer.delivered > 0 or indented
        if answered or introduces_call(self.shown.tail):
            return not answered
        return self.line_start and hands_over(self.shown.tail)

    def enter_region(self, region: Region) -> Steps[bool]:
        """Enter a region. After visible text, a tag opens reasoning only on a line of its own."""
        source = self.source
        size = consume_mark(source, region.open)
        tag = region.commitment is not Commitment.MARKED
        if self.buffer.text_emitted and tag and region.channel is Channel.REASONING:
            source.pos -= size
            following = (yield from source.peek(size + 1))[size:]
            if (following and not following.isspace()) or following == " ":
                return False
            source.pos += size
        if self.deferred:
            self.deferred.discard()
        self.separate_messages(region.channel)
        if region.is_frame:
            self.buffer.anything_emitted = True  # an empty frame is an empty answer
            self.after_call = False
        self.buffer.skip_mark(opened := source.text[source.pos - size : source.pos], self.blocks.is_aside(opened))
        self.region, self.thinking = region, region.channel is Channel.REASONING
        self.line_start = True
        return True

    def skip_leftover(self) -> None:
        """Skip a closing mark without an opener, or an end of turn, right after a call. The closing mark of a wrapper
        shows that the deferred calls before it are meant as calls."""
        source = self.source
        start = source.pos
        closed = mark(self.dialects.all_closers).match(source.text, start) is not None
        consume_mark(source, self.dialects.leftovers.marks[0])
        if (
            self.deferred
            and (closed or self.deferred.in_sentence)
            and not self.deferred.reasoning
            and not self.deferred.has_quotation
        ):
            self.deferred.accept()
            self.after_call = True
        elif self.deferred:
            self.deferred.append(source.text[start : source.pos])
        self.line_start = True

    def drop_fabricated_result(self) -> Steps[None]:
        """Drop and report a tool result that the model made up, and everything after it."""
        if self.deferred:
            self.deferred.accept(alone=self.deferred.undecided)
        rejected = yield from drop_to_end(self.source, mark(self.dialects.results.marks[0]))
        if rejected is not None:
            self.buffer.add_event(rejected)

    def open_block(self, wrap: Wrap | None, header: Header) -> Steps[bool]:
        """Read a block of calls that opens here; False if it is none and nothing was consumed."""
        source = self.source
        last = header in BARE_JSON or (header in AMBIGUOUS and self.shown.tail != "")
        start, after_call = source.offset + source.pos, self.after_call
        block = self.begin_block(wrap, header, last)
        taken = yield from self.blocks.read(block, wrap, header)
        if not self.blocks.end(block, taken):
            return (yield from self.fail_block(block, wrap, header, start))
        if self.is_echo(block, wrap, after_call):
            source.release()
            self.emit_text(block.raw or "")
            return True
        source.release()
        if self.is_example:
            introduction = self.shown.tail
            self.emit_text(block.raw or "")
            self.shown.tail = introduction  # it introduces the next call too, if nothing is between them
            return True
        self.line_start = True
        held, block.is_doubtful = self.thinking or block.held, self.is_doubtful
        self.judge_opening(block, wrap, header)
        if held and self.deferred.defer(block, self.thinking, last or block.alone):
            self.after_call |= block.in_sentence
        else:
            block.truncate_if_cut(source.truncated)
            if self.deferred.blocks:
                self.deferred.accept()
            self.after_call, self.line_start = not block.is_text, block.ends_line
            block.release()
        return True

    def begin_block(self, wrap: Wrap | None, header: Header, last: bool) -> CallBlock:
        """Begin a block. Deferred calls that it turns into text are discarded; ``last``: it may be like them."""
        if self.deferred.blocks and self.deferred.is_superseded(self.thinking, last):
            self.deferred.discard()
        self.is_example = self.is_doubtful = False
        apart = self.shown.is_apart(self.line_start)
        self.in_sentence = self.deferred.in_sentence or not (apart or self.thinking)
        return self.blocks.begin(wrap, partial(self.must_defer, wrap, header), apart, self.is_introduced)

    def judge_opening(self, block: CallBlock, wrap: Wrap | None, header: Header) -> None:
        """Note whether a block begins with a mark or is part of a sentence, and whether text may follow Python calls on
        their own lines: the text before hands them over."""
        at_line = wrap is None or wrap.position is Position.LINE
        block.is_handed_over = block.alone and at_line and block.is_python and hands_over(self.shown.tail)
        block.in_sentence = self.in_sentence and not self.is_doubtful
        if self.deferred.in_sentence and not block.in_sentence:
            self.deferred.end_sentence()
        block.opens_with_mark = self.commitment_of(header if wrap is None else wrap) is Commitment.MARKED

    def is_echo(self, block: CallBlock, wrap: Wrap | None, after_call: bool) -> bool:
        """Whether a block repeats the calls before it without their marks: they are meant once."""
        if wrap is not None and wrap.commitment is Commitment.MARKED:
            self.marked_block = self.source.since(block.start)
            return False
        return after_call and bool(block.raw) and (block.raw or "").strip() in self.marked_block

    def fail_block(self, block: CallBlock, wrap: Wrap | None, header: Header, start: int) -> Steps[bool]:
        """Handle a block without calls; True if all of it was emitted, as text or as a rejected call."""
        meant = bool(block.dialect and not self.thinking and (wrap or block.known_tool))
        meant = meant and not (announces_example(self.shown.tail) or is_shown(self.shown.tail))
        if meant:
            self.deferred.end_sentence()
            if (yield from self.blocks.report_miss(block, wrap, header)):
                self.line_start = self.after_call = True
                return True
        return (yield from self.return_as_text(start, header in BARE_JSON))

    def must_defer(self, wrap: Wrap | None, header: Header) -> bool:
        """Whether to defer a block: it counts only as a whole, only if nothing follows, or never (an example)."""
        commitment = self.commitment_of(wrap if wrap is not None else header)
        self.is_example = self.is_doubtful = False
        self.in_sentence &= commitment is Commitment.MARKED
        if not self.shown.is_empty:
            self.judge_introduction(commitment is Commitment.MARKED)
        if self.is_example or self.is_doubtful or self.thinking or self.deferred.blocks:
            return True
        if self.after_call and self.marked_block and commitment is not Commitment.MARKED:
            return True
        return (
            commitment is Commitment.WHOLE
            or self.in_sentence
            or (header in AMBIGUOUS and bool(self.shown.tail.strip()))
        )

    def judge_introduction(self, marked: bool) -> None:
        """Set whether the text before a block shows it as an example, or makes it doubtful. A marked call behind a
        phrase that introduces an example is doubtful."""
        tail, announced = self.shown.tail, announces_example(self.shown.tail)
        start = self.blocks.block.start if self.blocks.block is not None else self.source.here
        opening = self.source.since(start, start + 48)
        self.is_example = is_shown(tail) or self.open_elements.hold_call() or (announced and not marked)
        self.is_doubtful = not (self.is_example or self.thinking) and (announced or is_doubtful(tail, opening))

    def return_as_text(self, start: int, bare: bool) -> Steps[bool]:
        """Return a block without calls to the text; True if it was emitted already."""
        source, reached = self.source, self.blocks.reached
        again = self.blocks.may_read_again(start)
        source.rewind(start)
        if not again:
            source.rewind(reached)
            self.emit_text(source.since(start))
        source.release()
        if bare and again:
            yield from self.pass_json()
        return bare or not again
