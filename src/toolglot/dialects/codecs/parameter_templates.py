"""Writing marked-up parameters the way a dialect's sample writes them.

Strategy. The parameter in the sample is found with the same marks that read it; its opener, its closer and the layout
around the value become the form of every parameter. A value that would not come back as it is gets line breaks around
it, then a CDATA section; at last the arguments become a JSON body between header and closing mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from toolglot.core.lenient_json import Number, Value
from toolglot.dialects.codecs.raw_values import Parameter
from toolglot.dialects.codecs.sample_templates import HARD_JSON, JSON, KEY, TOOL, VALUE
from toolglot.dialects.codecs.whitespace import Trim
from toolglot.dialects.patterns import Mark

_SEPARATOR = re.compile(r"[\s,]*\Z")
_ELEMENT_NAME = re.compile(r"[\w:.\-]+\Z")
_TYPE = re.compile(r'(?<=type=")\w+(?=")|(?<=string=")\w+(?=")')


@dataclass(frozen=True, slots=True)
class ParameterTemplate:
    """A sample with its parameter cut out, and the parameter itself: what stands before and behind its value."""

    before: str
    after: str
    separator: str
    open: str
    close: str
    parameter: Parameter

    def fill(self, name: str, inside: str) -> str:
        return self.before.replace(TOOL, name) + inside + self.after.replace(TOOL, name)

    @property
    def breaks(self) -> bool:
        return self.open.endswith("\n")

    @property
    def prefix(self) -> str:
        """What every tag of a nested value carries."""
        return self.open[: -len(KEY) - 2]


@lru_cache(maxsize=256)
def parameter_template(sample: str, parameters: tuple[Parameter, ...]) -> ParameterTemplate | None:
    """The form of a sample that marks up its parameters."""
    for start in range(len(sample)):
        for parameter in parameters:
            found = Mark(parameter.open).at(sample, start, True)
            if isinstance(found, re.Match) and found["key"] == KEY:
                return _cut(sample, parameter, found)
    return None


def _cut(sample: str, parameter: Parameter, found: re.Match[str]) -> ParameterTemplate | None:
    value = sample.find(VALUE, found.end())
    closer = Mark(*(close.replace("{key}", KEY) for close in parameter.close))
    for at in range(value + len(VALUE), len(sample)) if value >= 0 else ():
        end = closer.at(sample, at, True)
        if isinstance(end, re.Match):
            before = sample[: found.start()]
            separator = _SEPARATOR.search(before)
            layout = separator[0] if separator else ""
            piece = (sample[found.start() : value], sample[value + len(VALUE) : end.end()])
            return ParameterTemplate(
                before[: len(before) - len(layout)], sample[end.end() :], layout, *piece, parameter
            )
    return None


def _kind(value: Value) -> str:
    if isinstance(value, Number):
        return "number"
    kinds = {str: "string", bool: "boolean", dict: "object", list: "array", type(None): "null"}
    return kinds[type(value)]


def _respell(mark: str, key: str, value: Value) -> str:
    """The sample's mark for another key and another kind of value."""

    def word(found: re.Match[str]) -> str:
        if found[0] == "true":
            return "true" if _kind(value) == "string" else "false"
        return _kind(value)

    return re.sub(rf"\b{KEY}\b", lambda _: key, _TYPE.sub(word, mark))


def write_elements(value: Value, prefix: str) -> str | None:
    """A value as nested elements, as far as elements can say it."""
    if not isinstance(value, (dict, list)):
        return JSON.write(value) if isinstance(value, Number) or not isinstance(value, str) else value
    children = value.items() if isinstance(value, dict) else (("item", item) for item in value)
    written = [_write_element(name, item, prefix) for name, item in children]
    return "".join(written) if written and all(written) else None


def _write_element(name: str, value: Value, prefix: str) -> str:
    """One element, or nothing when there is no such element."""
    inside = write_elements(value, prefix) if _ELEMENT_NAME.match(name) else None
    return "" if inside is None else f"{prefix}<{name}>{inside}{prefix}</{name}>"


@dataclass(frozen=True, slots=True)
class _ValueStyle:
    """One way of writing the values of a call."""

    nested: bool = True
    breaks: bool = False
    cdata: bool = False

    def write(self, form: ParameterTemplate, key: str, value: Value) -> str:
        text = self.text(form, value)
        if form.parameter.decode is not None:
            text = escape(text)
        if self.cdata and _kind(value) == "string":
            text = f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>"
            opener, closer = form.open.rstrip("\n"), form.close.lstrip("\n")
        else:
            opener, closer = form.open, form.close
            verbatim = form.parameter.trim is not Trim.BREAK
            layout = form.parameter.trim_for(key) is Trim.BREAK and not form.breaks
            if layout and (self.breaks or verbatim or "\n" in text):
                text = f"\n{text}\n"
        return _respell(opener, key, value) + text + _respell(closer, key, value)

    def text(self, form: ParameterTemplate, value: Value) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, (dict, list)) and "<{key}>" in form.parameter.open and self.nested:
            elements = write_elements(value, form.prefix)
            if elements is not None:
                return elements
        return JSON.write(value)


_VALUE_STYLES = (_ValueStyle(), _ValueStyle(nested=False, breaks=True), _ValueStyle(nested=False, cdata=True))


def write_parameters(
    sample: str, name: str, arguments: Mapping[str, Value], parameters: tuple[Parameter, ...]
) -> Iterator[str]:
    """The call in the form of the sample, then in forms that carry more."""
    form = parameter_template(sample, parameters)
    if form is None:
        return
    for manner in _VALUE_STYLES:
        yield form.fill(
            name, "".join(form.separator + manner.write(form, key, value) for key, value in arguments.items())
        )
    layout = "\n" if "\n" in form.separator else ""
    for notation in (JSON, HARD_JSON):
        yield form.fill(name, layout + notation.write(dict(arguments)))
