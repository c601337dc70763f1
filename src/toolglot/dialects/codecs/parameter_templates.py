"""Writes tagged parameters in the format of a dialect's sample.

Strategy. The parameter in the sample is found with the marks that read it; its opener, its closer and the whitespace
around the value become the template of every parameter. A value that would not read back unchanged is wrapped in line
breaks, then in a CDATA section; finally the arguments become a JSON body between header and closing mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape

from msgspec import Struct

from toolglot.core.lenient_json import Number, Value
from toolglot.dialects.codecs.parameter_marks import Parameter
from toolglot.dialects.codecs.sample_templates import HARD_JSON, JSON, KEY, TOOL, VALUE
from toolglot.dialects.codecs.whitespace import Trim
from toolglot.dialects.patterns import Mark

_SEPARATOR = re.compile(r"[\s,]*\Z")
_ELEMENT_NAME = re.compile(r"[\w:.\-]+\Z")
_TYPE = re.compile(r'(?<=type=")\w+(?=")|(?<=string=")\w+(?=")')


class ParameterTemplate(Struct, frozen=True, kw_only=True):
    """A sample without its parameter, and the parameter itself: the text before and after its value."""

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
        """The prefix of every tag of a nested value."""
        return self.open[: -len(KEY) - 2]


@lru_cache(maxsize=256)
def parameter_template(sample: str, parameters: tuple[Parameter, ...]) -> ParameterTemplate | None:
    """The template of a sample with tagged parameters."""
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
            return ParameterTemplate(
                before=before[: len(before) - len(layout)],
                after=sample[end.end() :],
                separator=layout,
                open=sample[found.start() : value],
                close=sample[value + len(VALUE) : end.end()],
                parameter=parameter,
            )
    return None


def _kind(value: Value) -> str:
    if isinstance(value, Number):
        return "number"
    kinds = {str: "string", bool: "boolean", dict: "object", list: "array", type(None): "null"}
    return kinds[type(value)]


def _respell(mark: str, key: str, value: Value) -> str:
    """The sample's mark for another key and another type of value."""

    def word(found: re.Match[str]) -> str:
        if found[0] == "true":
            return "true" if _kind(value) == "string" else "false"
        return _kind(value)

    return re.sub(rf"\b{KEY}\b", lambda _: key, _TYPE.sub(word, mark))


def write_elements(value: Value, prefix: str) -> str | None:
    """Write a value as nested elements; None if elements cannot express it."""
    if not isinstance(value, (dict, list)):
        return JSON.write(value) if isinstance(value, Number) or not isinstance(value, str) else value
    children = value.items() if isinstance(value, dict) else (("item", item) for item in value)
    written = [_write_element(name, item, prefix) for name, item in children]
    return "".join(written) if written and all(written) else None


def _write_element(name: str, value: Value, prefix: str) -> str:
    """Write one element; "" if it cannot be written."""
    inside = write_elements(value, prefix) if _ELEMENT_NAME.match(name) else None
    return "" if inside is None else f"{prefix}<{name}>{inside}{prefix}</{name}>"


class _ValueStyle(Struct, frozen=True):
    """One style of writing the values of a call."""

    nested: bool = True
    breaks: bool = False
    cdata: bool = False

    def write(self, template: ParameterTemplate, key: str, value: Value) -> str:
        text = self.text(template, value)
        if template.parameter.decode is not None:
            text = escape(text)
        if self.cdata and _kind(value) == "string":
            text = f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>"
            opener, closer = template.open.rstrip("\n"), template.close.lstrip("\n")
        else:
            opener, closer = template.open, template.close
            verbatim = template.parameter.trim is not Trim.BREAK
            layout = template.parameter.trim_for(key) is Trim.BREAK and not template.breaks
            if layout and (self.breaks or verbatim or "\n" in text):
                text = f"\n{text}\n"
        return _respell(opener, key, value) + text + _respell(closer, key, value)

    def text(self, template: ParameterTemplate, value: Value) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, (dict, list)) and "<{key}>" in template.parameter.open and self.nested:
            elements = write_elements(value, template.prefix)
            if elements is not None:
                return elements
        return JSON.write(value)


_VALUE_STYLES = (_ValueStyle(), _ValueStyle(nested=False, breaks=True), _ValueStyle(nested=False, cdata=True))


def write_parameters(
    sample: str, name: str, arguments: Mapping[str, Value], parameters: tuple[Parameter, ...]
) -> Iterator[str]:
    """The call in the format of the sample, then in formats that can express more."""
    template = parameter_template(sample, parameters)
    if template is None:
        return
    for style in _VALUE_STYLES:
        yield template.fill(
            name, "".join(template.separator + style.write(template, key, value) for key, value in arguments.items())
        )
    layout = "\n" if "\n" in template.separator else ""
    for notation in (JSON, HARD_JSON):
        yield template.fill(name, layout + notation.write(dict(arguments)))
