"""What to tell a model whose call was rejected.

Strategy. One paragraph and one example. The paragraph names what is wrong, token by token, and what to do next; all
marks that it quotes are escaped, so that they are not taken for a call. The example, in the last lines, is a correct
call of the same tool with the good arguments of the model: models correct themselves if they see the exact form once.
Everything is bounded: quoted tokens, lists of names, the example. Nothing raises, whatever the model wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Final

from msgspec.structs import replace

from toolglot.core.conversation import Tool
from toolglot.core.events import CallRejected, Defect, Reason
from toolglot.core.lenient_json import Value, dump
from toolglot.core.made_up_values import find_made_up
from toolglot.core.schema.coerce import UNKNOWN_NAME
from toolglot.core.schema.toolset import CompiledTool, compile_tool, compile_tools, plain_name
from toolglot.core.schema.validation import find_argument_defects
from toolglot.prompting.argument_salvage import MAX_READ, Salvage, salvage_arguments
from toolglot.prompting.call_writer import FALLBACK_DIALECT, resolve_dialect, write_call
from toolglot.prompting.corrected_call import (
    CorrectedCall,
    correct_arguments,
    holds_placeholder,
    keep_value,
    shorten_values,
)
from toolglot.prompting.mark_escaping import choose_break_character, get_mark_escaper
from toolglot.reading.reader import RejectedCall

__all__ = ["MAX_FEEDBACK", "find_near_names", "holds_placeholder", "list_unlisted", "write_feedback"]

MAX_FEEDBACK: Final = 3000
"""Limit for the characters of a feedback; most have less than a third."""
_MAX_EXAMPLE: Final = 1000
_MAX_TOKEN: Final = 60
_MAX_EXPECTED: Final = 160
_MAX_PROBLEMS: Final = 4
_MAX_DESCRIPTION: Final = 600
"""Limit for the characters that say what is wrong."""
_MAX_CALLS: Final = 3
"""Rejected calls that are described one by one."""
_MAX_LISTED: Final = 400
"""Limit for the characters of a list of names."""
_VALUE_SIZES: Final = (200, 40, 0)
"""Limits for the values in the example; the next one applies if the example is too long."""
_SIMILAR: Final = 0.6
_LESS_SIMILAR: Final = 0.2
"""How much less similar than the nearest name the others may be."""

_UNPRINTABLE: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_MARK: Final = re.compile(r"[<\[][/|｜]?[\w:.]{3,64}|\b\w{2,64}+(?:[>\]]|[|｜][>\]])")
"""The beginning or the end of a mark of a call."""
_MEMBER: Final = r"\"\s*,\s*\"?\w+\"?\s*:|\"\s*:\s*\""
"""JSON in a text: where a parameter is missing, it may be in the value of another one whose end is damaged."""
_ARGUMENT: Final = "argument "
_WHOLE: Final = ("call", "answer")
_SENTENCES: Final = {
    Reason.TRUNCATED: "it stops in the middle",
    Reason.MALFORMED: "it cannot be read",
    Reason.MISSING_ARGUMENT: "a required parameter is missing",
    Reason.DUPLICATE_ARGUMENT: "a parameter is given twice",
    Reason.INVALID_VALUE: "a value is not valid",
    Reason.LOW_CONFIDENCE: "it is not written in the form of a call",
    Reason.SWITCHED_OFF: "it is not written in the form that is used here",
    Reason.EXTRA_CALL: "only one call per answer is allowed; write one, wait for its result, then write the next",
    Reason.FORBIDDEN: "this tool cannot be called now",
    Reason.LEAKED: "it was written as text",
    Reason.QUOTATION: "it repeats a call of an earlier text",
    Reason.COPIED_EXAMPLE: "a value comes from an example; use the values of the task",
}
"""What is wrong, where the defects say nothing more exact."""
_FABRICATED: Final = (
    "You wrote a tool result yourself ({token}). It was removed, because only the tool can give its result. "
    "Write the call and stop there. You get the result in the next message."
)
_NOT_EXECUTED: Final = "was not executed: "
_UNNAMED: Final = "it does not name a tool"
_OR_TEXT: Final = "Call one of them, or answer without a tool."
_NO_TOOLS: Final = "There are no tools here: answer without a tool."
_AGAIN: Final = "Write the call again now, in exactly this form, and nothing else"
_AGAIN_NATIVE: Final = "Call {tool} again now, with arguments in exactly this form"
_ALL_AGAIN: Final = "Write these calls again now, and nothing else. The first one in the right form"
_ALL_AGAIN_NATIVE: Final = "Make these calls again now. The arguments of {tool} in the right form"
_ALONE: Final = "Write the call again now, complete and in the form that was described, and nothing else."
_NATIVELY: Final = "Make it through the tool-calling interface: a call that is written as text is not executed."
_REPLACE: Final = "Replace each [... ...] by your own full value."
_KEEP: Final = "Keep the values that were right."
_NONE_FITS: Final = (
    "If no allowed value of {keys} is what the user asked for, make no call and tell the user so in words. Otherwise: "
)
_LISTED: Final = "one of "
"""How the expectation of a value that must be a listed one begins."""


def write_feedback(
    rejected: Sequence[CallRejected | RejectedCall],
    tools: Sequence[Tool],
    dialect: str | None,
    *,
    break_character: str = "",
) -> str:
    """Tell a model what was wrong with its calls, and show the first one as it should be.

    Parameters:
        rejected: the rejected calls of one answer. Of a native call, ``raw`` is the text of its arguments and
            ``dialect`` is empty.
        tools: the tools on offer, under the names that the model knows.
        dialect: the dialect of the model (or a model id), None if it makes native calls.
        break_character: the invisible character that breaks quoted marks; by default one that the calls do not hold.

    Returns: a paragraph and, if the tool is known, a line break and a correct call of it: in the dialect, or as the
    JSON of its arguments. At most ``MAX_FEEDBACK`` characters; "" if no call was rejected.

    Raises: ``UsageError`` if ``dialect`` is unknown.
    """
    dialect_name = None if dialect is None else resolve_dialect(dialect).name
    if not rejected:
        return ""
    tools = tuple(tools)
    described = [_Rejection(call, tools, dialect_name) for call in rejected[:_MAX_CALLS]]
    example, shown = _choose_example(described)
    paragraph = _write_paragraph(described, len(rejected), shown)
    escaper = get_mark_escaper(dialect_name or FALLBACK_DIALECT, tuple(sorted(tool.name for tool in tools)))
    character = break_character or choose_break_character(call.raw[:MAX_READ] for call in rejected[:_MAX_CALLS])
    written = escaper.escape(paragraph, character)
    return (f"{written}:\n{example}" if example else written)[:MAX_FEEDBACK]


@dataclass(slots=True, init=False)
class _Rejection:
    """A rejected call, the tool that it means, and its arguments as they should be."""

    call: CallRejected | RejectedCall
    tools: tuple[Tool, ...]
    dialect: str | None
    written: str
    """The name that the model wrote."""
    near: tuple[str, ...]
    """Similar names of tools, if there is no tool of the written name."""
    tool: Tool | None
    compiled: CompiledTool
    salvage: Salvage
    corrected: CorrectedCall

    def __init__(self, call: CallRejected | RejectedCall, tools: tuple[Tool, ...], dialect: str | None) -> None:
        self.call, self.tools, self.dialect = call, tools, dialect
        self.written = _find_written_name(call)
        box = compile_tools(tools, ())
        is_callable = bool(self.written) and call.reason is not Reason.FORBIDDEN
        found = box.find(self.written) if is_callable else None
        self.near = find_near_names(self.written, box.names) if is_callable and found is None else ()
        name = found.name if found else next(iter(self.near), "")
        self.tool = next((tool for tool in tools if tool.name == name), None)
        self.compiled = compile_tool(self.tool) if self.tool is not None else CompiledTool(name)
        self.salvage, self.corrected = Salvage(), CorrectedCall()
        if self.tool is not None:
            self._correct(self.tool)

    def _correct(self, tool: Tool) -> None:
        """Keep the good arguments of the call, and correct the others."""
        call = self.call
        is_native = self.dialect is None and not call.dialect
        keys = [defect.where.removeprefix(_ARGUMENT) for defect in call.defects if _is_unknown_key(defect)]
        self.salvage = salvage_arguments(call.raw, self.compiled, (self.written,), keys, is_native)
        if call.reason is Reason.COPIED_EXAMPLE:
            own = {key: it for key, it in self.salvage.arguments.items() if find_made_up(dump(it)) is None}
            self.salvage = replace(self.salvage, arguments=own)
        for key, value in self.salvage.arguments.items():
            if call.reason is not Reason.LEAKED and self._is_doubtful(key, value):
                self.salvage.arguments[key] = keep_value(key)
        missing = [it.where.removeprefix(_ARGUMENT) for it in call.defects if it.reason is Reason.MISSING_ARGUMENT]
        self.corrected = correct_arguments(tool, self.compiled, self.salvage, missing)
        self.corrected.made_up += [key for key in _list_repeated(call.defects) if key in self.corrected.arguments]

    def _is_doubtful(self, key: str, value: Value) -> bool:
        """Whether a value may hold more than the model meant for its parameter: its end is damaged, or a text in it
        holds a mark or the beginning of another parameter."""
        call = self.call
        damaged = (it.where for it in call.defects if it.reason is Reason.MALFORMED and not _is_unknown_key(it))
        is_markup = isinstance(value, str) and "<" in value and not self.compiled.type_of(key).streams
        if is_markup or _ARGUMENT + key in damaged:
            return True
        begins, texts = self._write_beginnings(key), _list_texts(value)
        return any(re.search(begins, text) or (call.dialect and _has_frame(text, call.raw)) for text in texts)

    def _write_beginnings(self, key: str) -> str:
        """An expression for the beginning of another parameter, or of this one again, in the value of ``key``."""
        others = [re.escape(name) for name in self.compiled.parameters.properties if name not in self.salvage.arguments]
        names = f"(?:{'|'.join(others) or '(?!)'})"
        lacks = any(it.reason is Reason.MISSING_ARGUMENT for it in self.call.defects)
        return rf"[^\w\s](?:{names}\b|{re.escape(key)}[^\w\s])|{names}[^\w\s]|{_MEMBER if lacks else '(?!)'}"

    @property
    def is_text(self) -> bool:
        """Whether a model that makes native calls wrote the call as text."""
        return self.dialect is None and bool(self.call.dialect)

    @property
    def is_fabricated(self) -> bool:
        return self.call.reason is Reason.FABRICATED_RESULT

    @property
    def is_unknown(self) -> bool:
        """Whether the call names no tool on offer."""
        return self.tool is None or bool(self.near)

    # -- problems ------------------------------------------------------------------------------------------------------

    def list_problems(self) -> Iterator[str]:
        """What is wrong with the call, each as part of a sentence."""
        if self.is_unknown:
            yield self._describe_unknown_tool()
        if self.call.reason is Reason.TRUNCATED:
            yield _SENTENCES[Reason.TRUNCATED] + (f", in {_quote(self.salvage.cut)}" if self.salvage.cut else "")
            return
        yield from map(self._describe_unknown_key, self.corrected.unknown)
        for defect in self.call.defects:
            if not self._is_covered(defect):
                yield _describe(defect)

    def _is_covered(self, defect: Defect) -> bool:
        """Whether the defect is described otherwise, or the argument is there after all."""
        if defect.reason is Reason.UNKNOWN_TOOL or defect.where == "tool name" or _is_unknown_key(defect):
            return True
        given = {*self.salvage.arguments, *self.corrected.renamed.values()}
        return defect.reason is Reason.MISSING_ARGUMENT and defect.where.removeprefix(_ARGUMENT) in given

    def describe(self) -> str:
        problems = list(dict.fromkeys(self.list_problems()))[:_MAX_PROBLEMS]
        return "; ".join(problems) or _SENTENCES.get(self.call.reason, _SENTENCES[Reason.MALFORMED])

    def _describe_unknown_tool(self) -> str:
        if not self.written:
            return _UNNAMED
        if self.call.reason is Reason.FORBIDDEN:
            return f"the tool {_quote(self.written)} cannot be called now"
        did_you_mean = f" (did you mean {_join(self.near, ' or ')}?)" if self.near else ""
        return f"there is no tool {_quote(self.written)}{did_you_mean}"

    def _describe_unknown_key(self, key: str) -> str:
        sentence = f"{_quote(key)}{self._locate(key)} is not a parameter of {_quote(self.compiled.name)}"
        meant = self.corrected.renamed.get(key)
        if meant is None:
            declared = self.compiled.parameters.properties
            is_last = key == [name for name in self.corrected.unknown if name not in self.corrected.renamed][-1]
            return f"{sentence} (it has {_list_names(declared)})" if is_last and declared else sentence
        nested = not self.compiled.type_of(meant).streams and isinstance(self.corrected.arguments[meant], (list, dict))
        return f"{sentence}, " + (f"it belongs into {_quote(meant)}" if nested else f"write {_quote(meant)} instead")

    def _locate(self, token: str) -> str:
        """The line of a token, if the call has several."""
        raw = self.call.raw[:MAX_READ].strip()
        at = raw.find(token)
        return f" (line {raw.count(chr(10), 0, at) + 1})" if at >= 0 and "\n" in raw else ""

    # -- the example ---------------------------------------------------------------------------------------------------

    def write_example(self) -> str:
        """The corrected call; "" if there is no tool to call, or the call would be too long or not valid."""
        if self.tool is None or self.is_fabricated:
            return ""
        for size in _VALUE_SIZES:
            text = dump(shorten_values(self.corrected.arguments, self.compiled.parameters, size))
            if len(text) > _MAX_EXAMPLE or find_argument_defects(self.tool, text):
                continue
            text = text if self.dialect is None else write_call(self.dialect, self.tool.name, text, (self.tool,))
            if len(text) <= _MAX_EXAMPLE:
                return text
        return ""


def _list_texts(value: Value) -> Iterator[str]:
    """The texts in a value, and its keys, each with a colon."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield "".join(f"{key}:\n" for key in value)
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _list_texts(part)


def _has_frame(text: str, raw: str) -> bool:
    """Whether a value of a call in text holds one of the marks that stand outside the value."""
    return any(raw.count(mark) > text.count(mark) for mark in set(_MARK.findall(text)))


def _choose_example(described: Sequence[_Rejection]) -> tuple[str, _Rejection | None]:
    for rejection in described:
        if example := rejection.write_example():
            return example, rejection
    return "", None


# -- the paragraph -----------------------------------------------------------------------------------------------------


def _write_paragraph(described: Sequence[_Rejection], count: int, shown: _Rejection | None) -> str:
    parts = [_write_problems(described, count), *_list_tools(described)]
    if any(rejection.is_text and not rejection.is_fabricated for rejection in described):
        parts.append(_NATIVELY)
    if shown is not None:
        parts += [*_explain_values(shown), _allow_words(shown) + _introduce(shown, count)]
    elif all(rejection.tool is not None and not rejection.is_fabricated for rejection in described):
        parts.append(_ALONE)
    return " ".join(parts)


def _write_problems(described: Sequence[_Rejection], count: int) -> str:
    if count == 1:
        (only,) = described
        if only.is_fabricated:
            return _FABRICATED.format(token=_quote(only.call.raw))
        named = "" if only.is_unknown else f" of {_quote(only.compiled.name)}"
        return f"Your call{named} {_NOT_EXECUTED}{_clean(only.describe(), _MAX_DESCRIPTION)}."
    most = _MAX_DESCRIPTION // len(described)
    listed = (f"{number}. {_clean(_name(it), most)}." for number, it in enumerate(described, 1))
    return f"{count} of your calls were not executed. {' '.join(listed)}"


def _name(rejection: _Rejection) -> str:
    """A rejection in a list of several."""
    if rejection.is_fabricated:
        return "A tool result that you wrote yourself: only the tool can give it"
    return f"{_quote(rejection.written or '?')}: {rejection.describe()}"


def _list_tools(described: Sequence[_Rejection]) -> Iterator[str]:
    """The names of all tools, if a call names none of them and nothing similar."""
    for rejection in described:
        if rejection.tool is None and not rejection.is_fabricated:
            names = [tool.name for tool in rejection.tools]
            yield f"The tools are: {_list_names(names)}. {_OR_TEXT}" if names else _NO_TOOLS
            return


def _explain_values(shown: _Rejection) -> Iterator[str]:
    """What the model must do with the values of the example."""
    arguments = shorten_values(shown.corrected.arguments, shown.compiled.parameters, _VALUE_SIZES[0])
    if holds_placeholder(dump(arguments)):
        yield _REPLACE
    cut = [key for key, value in arguments.items() if _is_shorter(value, shown.corrected.arguments[key])]
    if cut:
        yield f"Write all items of {_join(cut[:_MAX_PROBLEMS], ' and ')}, not only one."
    if made_up := shown.corrected.made_up[:_MAX_PROBLEMS]:
        are = "is only an example" if len(made_up) == 1 else "are only examples"
        yield f"The value{'s'[: len(made_up) - 1]} of {_join(made_up, ' and ')} {are}: write your own."
    if shown.salvage.arguments:
        yield _KEEP


def list_unlisted(defects: Iterable[Defect]) -> list[str]:
    """The arguments whose value is none of those that the schema lists. Perhaps none of them is what the user wants, so
    the model must be free to make no call."""
    wrong = (it for it in defects if it.reason is Reason.INVALID_VALUE and it.expected.startswith(_LISTED))
    return list(dict.fromkeys(it.where.removeprefix(_ARGUMENT) for it in wrong if it.where.startswith(_ARGUMENT)))


def _allow_words(shown: _Rejection) -> str:
    """What to do if the call cannot be corrected, because the tool does not have what the user wants."""
    keys = list_unlisted(shown.call.defects)[:_MAX_PROBLEMS]
    return _NONE_FITS.format(keys=_join(keys, " and ")) if keys else ""


def _is_shorter(shown: Value, given: Value) -> bool:
    return isinstance(shown, list) and isinstance(given, list) and len(shown) < len(given)


def _introduce(shown: _Rejection, count: int) -> str:
    if shown.dialect is None:
        return (_AGAIN_NATIVE if count == 1 else _ALL_AGAIN_NATIVE).format(tool=_quote(shown.compiled.name))
    return _AGAIN if count == 1 else _ALL_AGAIN


def _describe(defect: Defect) -> str:
    """One defect as part of a sentence."""
    found, expected = _clean(defect.found, _MAX_TOKEN), _clean(defect.expected, _MAX_EXPECTED)
    name = defect.where.removeprefix(_ARGUMENT)
    is_argument = name != defect.where
    where = _quote(name) if is_argument else _clean(defect.where, _MAX_TOKEN)
    match defect.reason:
        case Reason.COPIED_EXAMPLE:
            return f"the value {_quote(defect.found)} comes from an example; use the values of the task"
        case Reason.MISSING_ARGUMENT if is_argument:
            return f"the required parameter {where} is missing"
        case Reason.DUPLICATE_ARGUMENT:
            return f"the parameter {where} is given twice"
        case Reason.INVALID_VALUE if is_argument:
            return f"{where} is {found}, but it must be {expected}"
        case Reason.MALFORMED | Reason.INVALID_VALUE | Reason.MISSING_ARGUMENT:
            sentence = f"found {found}, expected {expected}"
            return sentence if where in _WHOLE else f"in {where if is_argument else f'the {where}'}, {sentence}"
    return _SENTENCES.get(defect.reason, _SENTENCES[Reason.MALFORMED])


def _list_repeated(defects: Iterable[Defect]) -> list[str]:
    """The arguments that were given twice."""
    found = (defect.where.removeprefix(_ARGUMENT) for defect in defects if defect.reason is Reason.DUPLICATE_ARGUMENT)
    return list(dict.fromkeys(found))


def _is_unknown_key(defect: Defect) -> bool:
    return defect.reason is Reason.MALFORMED and defect.found == UNKNOWN_NAME


def _find_written_name(call: CallRejected | RejectedCall) -> str:
    """The tool name that the model wrote, as far as the rejection tells."""
    unknown = next((defect.found for defect in call.defects if defect.reason is Reason.UNKNOWN_TOOL), "")
    return plain_name(unknown) if unknown else call.tool or ""


def find_near_names(written: str, names: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The names that are similar to the written one, the most similar first."""
    if not written:
        return ()
    scores = {name: _rate_similarity(plain_name(written).lower(), name[:256].lower()) for name in names}
    least = max(_SIMILAR, max(scores.values(), default=0) - _LESS_SIMILAR)
    near = [name for name, score in scores.items() if score >= least]
    return tuple(sorted(near, key=lambda name: -scores[name])[:most])


def _rate_similarity(one: str, other: str) -> float:
    """How similar two names are, from 0 to 1; the order of their words does not matter."""
    words = [" ".join(sorted(re.findall(r"[^\W_]+", name))) for name in (one, other)]
    return max(_ratio(one, other), _ratio(*words))


def _ratio(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= _SIMILAR and matcher.quick_ratio() >= _SIMILAR else 0.0


def _join(names: Sequence[str], last: str) -> str:
    quoted = [_quote(name) for name in names]
    return last.join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))


def _list_names(names: Iterable[str]) -> str:
    """A list of names, shortened."""
    quoted = [_quote(name) for name in names]
    sizes = accumulate(len(name) + 2 for name in quoted)
    shown = sum(1 for size in sizes if size <= _MAX_LISTED)
    more = f" and {len(quoted) - shown} more" if shown < len(quoted) else ""
    return ", ".join(quoted[:shown]) + more


def _quote(token: str) -> str:
    return f"`{_clean(token, _MAX_TOKEN).replace('`', chr(39))}`"


def _clean(text: str, longest: int) -> str:
    """The text in one line, shortened."""
    line = _UNPRINTABLE.sub(" ", text[: longest * 4]).strip()
    return line if len(line) <= longest else line[: longest - 3] + "..."
