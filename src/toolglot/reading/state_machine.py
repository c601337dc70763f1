"""The reader's machine: walks through an answer and decides what is text, what is reasoning and what is a call.

Strategy. Ordinary text leaves at once; the machine stops only at characters that can begin a mark, asks whether one
stands there (yes, no, or wait for more), and tries to read a frame of calls. A frame that turns out to be no call is
wound back and its first character goes out as text, so nothing is lost. Three shields keep quoted marks from being
executed: inline code, code fences, and JSON that is an answer.
"""

from __future__ import annotations

import re
from functools import partial

from toolglot.core.events import CallRejected, Defect, Event, Reason, TextDelta
from toolglot.core.options import Options
from toolglot.core.schema.toolset import CompiledTools
from toolglot.dialects.event_buffer import EventBuffer
from toolglot.dialects.partial_call import RAW_LIMIT, AnswerState, CallBlock
from toolglot.dialects.patterns import MORE, MarkIndex, mark
from toolglot.dialects.scanner import Source, Steps, at_once
from toolglot.dialects.spec import Channel, Commitment, Region, Wrap
from toolglot.reading.call_blocks import CallBlockReader, consume
from toolglot.reading.code_spans import CodeSpans
from toolglot.reading.deferred_calls import DeferredCalls
from toolglot.reading.dialect_index import (
    BARE_JSON,
    CLOSED_ELEMENT,
    ELEMENT,
    SHOWN,
    STRAY_THINKING,
    DialectIndex,
    Header,
    Opening,
    Openings,
    T,
)
from toolglot.reading.example_detection import TAIL, announces_example, introduces_call

TAIL_LIMIT = 450
"""The last text is remembered, and cut back to ``TAIL`` when it has grown to this."""

_LIST_ITEM = re.compile(r"(?:\A|\n)[ \t]*(?:[-*+>]|\d+[.)])[ \t]+\Z")
_MARGIN = (" ", "\t")
_BLANKS = re.compile(r"\s+")
_JSON_STOPS = re.compile(r'["{}\[\]\\\n]')
_SHOWN_STOPS = re.compile("[\n`]")


def _is_json(opening: Wrap | Header) -> bool:
    """Whether something opens that may hold JSON and is ordinary text."""
    return opening in BARE_JSON if isinstance(opening, str) else opening.commitment is not Commitment.MARKED


class StateMachine:
    """One answer being read."""

    def __init__(
        self, vocabulary: DialectIndex, toolbox: CompiledTools, options: Options, ledger: AnswerState, hint: str = ""
    ) -> None:
        self.vocabulary = vocabulary
        self.ledger = ledger
        self.source = Source()
        self.sink = EventBuffer()
        self.held = DeferredCalls(self.sink)
        marks = vocabulary.landmarks(toolbox.names, options.unknown_tools == "reject")
        self.names, self.elements, self.heads, self.stops, self.line_stops = marks
        self.frames = CallBlockReader(self.source, self.sink, vocabulary, toolbox, options, ledger, self.elements, hint)
        self.region: Region | None = None
        self.thinking = False
        self.code = CodeSpans()
        self.line_start = True
        self.after_call = False
        self.example = False
        self.tail = ""

    # -- text ----------------------------------------------------------------------------------------------------------

    def say(self, piece: str) -> None:
        """Text that is not part of a call."""
        if self.held.frames:
            self.held.drop()
        self.after_call = False
        if self.thinking:
            self.sink.add_reasoning(piece)
        else:
            self.sink.add_text(piece)
            self.remember(piece)

    def pass_piece(self, piece: str) -> list[Event] | None:
        """Text from the middle of a line on, without anything that could matter."""
        if self.stops.search(piece) is not None:
            return None
        self.tail = tail = self.tail + piece
        if len(tail) > TAIL_LIMIT:
            self.tail = tail[-TAIL:]
        return [TextDelta(piece)]

    def pass_reasoning(self, piece: str) -> list[Event] | None:
        return None if self.stops.search(piece) is not None else [self.sink.make_reasoning_event(piece)]

    def remember(self, piece: str) -> None:
        tail = self.tail + piece
        self.tail = tail if len(tail) <= TAIL_LIMIT else tail[-TAIL:]

    def say_up_to(self, end: int) -> None:
        source = self.source
        if end > source.pos:
            piece = source.text[source.pos : end]
            source.pos = end
            self.say(piece)

    def pass_blanks(self, piece: str) -> None:
        """Blanks after a line break: layout if a call comes next, text otherwise."""
        if self.held:
            self.held.pass_by(piece)
        elif self.thinking:
            self.sink.add_reasoning(piece)
        else:
            self.sink.hold_whitespace(piece)
            self.remember(piece)

    def run(self) -> Steps[None]:
        source = self.source
        ahead = 0
        while not source.at_end:
            if not self.line_start or source.pos == len(source.text):
                yield from self.pass_text(ahead)
            ahead = (yield from self.stop()) if source.pos < len(source.text) else 0
        self.held.end(source.truncated)
        self.sink.finish()

    def pass_text(self, ahead: int) -> Steps[None]:
        """Let text go by up to a character that could matter; those ``ahead`` do not."""
        source = self.source
        while not (self.line_start and source.pos < len(source.text)):
            stops = self.stops_here() if self.code.fences or self.code.inline else self.stops
            found = stops.search(source.text, source.pos + ahead)
            ahead = 0
            self.say_up_to(len(source.text) if found is None else found.start())
            if found is not None or source.final:
                return
            if stops is self.stops and not self.line_start and not self.held.frames:
                source.run = self.pass_reasoning if self.thinking else self.pass_piece
            yield
            source.run = None

    def stops_here(self) -> re.Pattern[str]:
        """What could matter here; inside code that is only shown, little does."""
        if self.region is None:
            return _SHOWN_STOPS
        return self.line_stops if self.code.inline else self.stops

    def stop(self) -> Steps[int]:
        """Something that could matter stands here; how many characters of it turned out to be text."""
        source = self.source
        head = source.text[source.pos]
        if head == "\n" or (self.line_start and head.isspace()):
            self.pass_layout()
        elif self.region is not None and (yield from self.close_region(self.region)):
            pass
        elif head == "`" or (head == "~" and self.line_start):
            yield from self.pass_backticks()
        elif (
            self.code.fences
            or self.code.inline
            or ((self.tail or self.thinking) and not self.heads.match(source.text, source.pos))
            or not (yield from self.open())
        ):
            self.line_start = False
            return 1
        return 0

    def pass_layout(self) -> None:
        """Blanks from the end of a line on."""
        source = self.source
        start = source.pos
        found = _BLANKS.match(source.text, start)
        source.pos = found.end() if found is not None else start
        blanks = source.text[start : source.pos]
        if "\n" in blanks:
            self.code.end_line(paragraph=self.line_start or blanks.count("\n") > 1)
            self.line_start = True
        self.pass_blanks(blanks)

    def tell_as_text(self, text: str) -> list[Event]:
        """Tell what waits as the text that it is; ``text`` is everything that has come."""
        if self.ledger.first_call is not None:
            blanks, start = self.ledger.first_call
            self.sink.drop_whitespace()
            self.sink.add_text(blanks + text[start:])
        else:
            if self.held.frames:
                self.held.drop()
            rest = text[self.source.unread :]
            if self.thinking:
                self.sink.add_reasoning(rest)
            else:
                self.sink.add_text(rest)
        return self.sink.drain()

    # -- what is only shown --------------------------------------------------------------------------------------------

    def pass_backticks(self) -> Steps[None]:
        """A run of backticks (or tildes) opens or closes a fence or inline code."""
        source = self.source
        ticks = yield from source.peek_run(source.text[source.pos])
        is_fence = len(ticks) >= 3 and (self.line_start or _LIST_ITEM.search(self.tail) is not None)
        if (is_fence or not self.tail) and not self.code.fences and (yield from self.open()):
            return
        label = (yield from source.peek(len(ticks) + 1))[len(ticks) :]
        source.pos += len(ticks)
        if is_fence:
            self.code.pass_fence(ticks, label)
        else:
            self.code.pass_ticks(ticks, label)
        self.say(ticks)
        self.line_start = False

    def pass_json(self) -> Steps[None]:
        """JSON that is an answer: up to its last bracket, or the end of the paragraph, nothing in it is a call."""
        source = self.source
        depth, quoted, line_end = 0, False, -1
        while not source.at_end:
            found = _JSON_STOPS.search(source.text, source.pos)
            self.say_up_to(len(source.text) if found is None else found.end())
            if found is None:
                if not source.final:
                    yield
                continue
            head = found[0]
            if head == "\\":
                self.say((yield from source.peek()))
                source.pos = min(source.pos + 1, len(source.text))
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

    def part_messages(self, region: Region) -> None:
        """Text outside and inside of a message is not one word, even if nothing but marks parts them."""
        if region.channel is not Channel.REASONING and self.tail and not self.tail[-1].isspace():
            self.sink.end_message()

    # -- marks ---------------------------------------------------------------------------------------------------------

    def close_region(self, region: Region) -> Steps[bool]:
        source = self.source
        start = source.here
        found = (yield from source.match(mark(region.close))) if region.close else None
        if found is None:
            return False
        self.part_messages(region)
        self.held.close(found[0])
        self.region, self.thinking = None, False
        self.code.clear()
        self.line_start = source.here > start
        return True

    def open(self) -> Steps[bool]:
        """Try everything that may open here; True when something was consumed."""
        if (self.after_call or self.held.frames or self.ledger.delivered) and (yield from self.pass_aftermath()):
            return True
        opening = yield from self.find_opening(self.vocabulary.anywhere)
        if opening is not None and (yield from self.begin(opening)):
            return True
        if (self.line_start or self.may_list()) and (yield from self.open_line()):
            return True
        lone = self.vocabulary.lone_heads.match(self.source.text, self.source.pos)
        if lone and ((yield from self.pass_stray_end()) or (yield from self.pass_turn())):
            return True
        return self.elements is not None and (yield from self.open_element(self.elements))

    def open_element(self, elements: MarkIndex) -> Steps[bool]:
        """An element that is named after a tool."""
        element = yield from self.source.look(elements)
        if element is None:
            return False
        if not element[0].endswith("/>"):
            return (yield from self.open_frame(None, ELEMENT))
        return self.line_start and self.tail[-1:] not in _MARGIN and (yield from self.open_frame(None, CLOSED_ELEMENT))

    def pass_stray_end(self) -> Steps[bool]:
        """The end of thinking that began in the prompt; behind a blank it is a word of a sentence about the mark."""
        word = self.region is not None or (self.tail[-1:] in _MARGIN and not self.line_start)
        if word or (found := (yield from self.source.look(STRAY_THINKING))) is None or self.frames.is_aside(found[0]):
            return False
        self.source.pos += len(found[0])
        self.sink.skip_mark(found[0])
        self.line_start = True
        return True

    def pass_turn(self) -> Steps[bool]:
        """The end of a turn, or the beginning of one of the model's own: nothing before a call, text otherwise.

        Behind a blank it is a word of a sentence about the mark.
        """
        source, turns = self.source, self.vocabulary.turns
        word = self.tail[-1:] in _MARGIN and not self.line_start
        if word or self.thinking or self.held.frames or (yield from source.choose(turns)) is None:
            return False
        size = consume(source, turns.marks[0])
        self.sink.hold_whitespace(source.text[source.pos - size : source.pos])
        self.after_call = False
        self.line_start = True
        return True

    def open_line(self) -> Steps[bool]:
        """What may open only at the start of a line, or where a list of calls is introduced."""
        if not (self.line_start or (yield from self.opens_list())):
            return False
        opening = yield from self.find_opening(self.vocabulary.at_line)
        if opening is not None and (yield from self.begin(opening)):
            return True
        if not self.tail and (label := (yield from self.find_opening(self.vocabulary.at_start))) is not None:
            return (yield from self.begin(label))
        if self.names is None or (yield from self.source.look(self.names)) is None:
            return False
        opening = yield from self.find_opening(self.vocabulary.named)
        return opening is not None and (yield from self.begin(opening))

    def may_list(self) -> bool:
        return self.names is not None and self.source.text[self.source.pos] == "["

    def opens_list(self) -> Steps[bool]:
        """Whether a list of calls stands here, on the same line as the words that introduce it."""
        if self.names is None or not self.is_introduced():
            return False
        return (yield from self.source.look(self.names, 1)) is not None

    def pass_aftermath(self) -> Steps[bool]:
        """What may follow a call and is no answer: stray marks, and results the model made up."""
        source, vocabulary = self.source, self.vocabulary
        if (self.after_call or self.held) and (yield from source.choose(vocabulary.leftovers)) is not None:
            self.pass_leftover()
            return True
        if self.thinking or self.held.reasoning or not self.line_start:
            return False
        if (yield from source.choose(vocabulary.results)) is None or (
            yield from source.choose(vocabulary.turns)
        ) is not None:
            return False
        if self.held.undecided and (yield from self.frames.find_result()):
            self.held.drop()  # a quoted call with its result is a quoted conversation
            return False
        yield from self.swallow_result()
        return True

    def find_opening(self, openings: Openings[T]) -> Steps[T | None]:
        source = self.source
        while (index := openings.choice.at(source.text, source.pos, source.final)) is MORE:
            yield
        return None if index is None else openings.entries[index]

    def begin(self, opening: Opening) -> Steps[bool]:
        """Read what opens here; False when it is none of that and nothing was consumed."""
        if isinstance(opening, Region):
            return self.enter(opening)
        if self.region is not None and self.region.channel is Channel.ANSWER and _is_json(opening):
            return self.pass_answer(opening)
        if self.commitment_of(opening) is Commitment.ALONE and not self.is_introduced():
            return at_once(False)
        return self.open_frame(opening, "") if isinstance(opening, Wrap) else self.open_frame(None, opening)

    def commitment_of(self, opening: Wrap | Header) -> Commitment:
        return opening.commitment if isinstance(opening, Wrap) else self.vocabulary.commitment(opening)

    def is_introduced(self) -> bool:
        """Whether nothing of substance was said before this place."""
        indented = bool(self.tail.strip()) and self.line_start and self.tail[-1:] in _MARGIN
        told = self.region is not None or self.ledger.delivered > 0 or indented
        return not told and introduces_call(self.tail)

    def pass_answer(self, opening: Wrap | Header) -> Steps[bool]:
        """JSON in a message to the user is text; a fence around it is passed like any other."""
        if isinstance(opening, Wrap):
            return False
        yield from self.pass_json()
        return True

    def enter(self, region: Region) -> Steps[bool]:
        """Begin a region; behind visible text, a tag begins reasoning only where it has a line of its own."""
        source = self.source
        size = consume(source, region.open)
        tag = region.commitment is not Commitment.MARKED
        if self.sink.text_emitted and tag and region.channel is Channel.REASONING:
            source.pos -= size
            following = (yield from source.peek(size + 1))[size:]
            if (following and not following.isspace()) or following == " ":
                return False
            source.pos += size
        if self.held:
            self.held.drop()
        self.part_messages(region)
        self.sink.skip_mark(opened := source.text[source.pos - size : source.pos], self.frames.is_aside(opened))
        self.region, self.thinking = region, region.channel is Channel.REASONING
        self.line_start = True
        return True

    def pass_leftover(self) -> None:
        """A closing mark without an opener, or an end of turn, right behind a call: it means nothing.

        The closing mark of a wrapper says that what waits before it was meant as a call.
        """
        source = self.source
        start = source.pos
        closed = mark(self.vocabulary.all_closers).match(source.text, start) is not None
        consume(source, self.vocabulary.leftovers.marks[0])
        if self.held and closed and not self.held.reasoning and not self.held.has_quotation:
            self.held.promote()
            self.after_call = True
        elif self.held:
            self.held.pass_by(source.text[start : source.pos])
        self.line_start = True

    def swallow_result(self) -> Steps[None]:
        """The model made up a tool's result: that, and all that rests on it, is dropped and reported."""
        if self.held:
            self.held.promote(alone=self.held.undecided)
        source = self.source
        start = source.here
        size = consume(source, self.vocabulary.results.marks[0])
        pieces = [source.text[source.pos - size : source.pos]]
        kept = 0
        while True:
            piece = source.text[source.pos :]
            if kept < RAW_LIMIT:
                pieces.append(piece)
                kept += len(piece)
            source.pos = len(source.text)
            if source.final:
                break
            yield
        raw = "".join(pieces)[:RAW_LIMIT]
        if raw[size:].strip():
            reason = Reason.FABRICATED_RESULT
            flaw = Defect(reason, "answer", "a tool result written by the model", "the call alone")
            self.sink.add_event(CallRejected(raw, reason, None, (flaw,), span=(start, source.here)))

    def open_frame(self, wrap: Wrap | None, header: Header) -> Steps[bool]:
        """Read a frame of calls that opens here; False when it is none and nothing was consumed."""
        source = self.source
        bare = header in BARE_JSON
        last = bare or (header in SHOWN and self.tail != "")
        if self.held.is_over(self.thinking):
            self.held.drop()
        start = source.here
        self.example = False
        frame = self.frames.begin(wrap, partial(self.must_wait, wrap, header), self.line_start, self.is_introduced)
        taken = yield from self.frames.read(frame, wrap, header)
        if not self.frames.end(frame, taken):
            return (yield from self.fail(frame, wrap, header, start))
        source.release()
        if self.example:
            introduction = self.tail
            self.say(frame.raw or "")
            self.tail = introduction  # it introduces the next call as well, if nothing stands between them
            return True
        self.line_start = True
        if not self.held.take(frame, self.thinking, last or frame.alone):
            frame.truncate_if_cut(source.truncated)
            if self.held.frames:
                self.held.promote()
            self.after_call, self.line_start = not frame.is_text, frame.ends_line
        return True

    def fail(self, frame: CallBlock, wrap: Wrap | None, header: Header, start: int) -> Steps[bool]:
        """A frame is none; whether all of it is told: as text, or as rejected."""
        meant = frame.dialect and not self.thinking and (wrap or frame.known_tool) and not announces_example(self.tail)
        if meant and (yield from self.frames.report_miss(frame, wrap, header)):
            self.line_start = self.after_call = True
            return True
        return (yield from self.give_back(start, header in BARE_JSON))

    def must_wait(self, wrap: Wrap | None, header: Header) -> bool:
        """Whether a frame counts only as a whole, or only if nothing follows it, or never because it is shown."""
        commitment = self.commitment_of(wrap if wrap is not None else header)
        self.example = bool(self.tail) and announces_example(self.tail)
        if self.example or self.thinking or self.held.frames:
            return True
        return commitment is Commitment.WHOLE or (header in SHOWN and bool(self.tail.strip()))

    def give_back(self, start: int, bare: bool) -> Steps[bool]:
        """What set out to be a frame is text; True when it is told already."""
        source, reached = self.source, self.frames.reached
        again = self.frames.may_read_again(start)
        source.rewind(start)
        if not again:
            source.rewind(reached)
            self.say(source.since(start))
        source.release()
        if bare and again:
            yield from self.pass_json()
        return bare or not again
