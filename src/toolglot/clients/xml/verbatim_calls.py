"""Pass on calls that the model wrote in the client's own XML.

Strategy. The client's own parser decides. If our port of it finds a complete call of a known tool in the text, with all
required values and no complaint, the text is sent unchanged, including entities, code fences and tags that the client
skips. The general reader only decides whether it is a call: it may be quoted, shown in code, or part of the reasoning.

If something is missing or malformed, the general reader may know better: models use other parameter names, and write
JSON that can be repaired. Values that the client parsed stay, the rest comes from the reader, and the call is rendered
again. If that fails, the text is sent unchanged, and the client reports the error.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from toolglot.clients.xml.call_renderer import RenderedCall, render_call
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.nested_parser import MalformedValue
from toolglot.clients.xml.parsers import (
    CONTENT_CLOSER,
    CONTENT_TAG,
    WRITE_TOOL,
    CallEndFinder,
    trim_value,
    utf16_length,
)
from toolglot.clients.xml.profile import ClientTool, XmlCallBlock
from toolglot.clients.xml.value_decoding import decode_values, parse_strict_json
from toolglot.core.lenient_json import Number, Value, dump
from toolglot.core.options import Element

SENT_AS_WRITTEN: Final = "as the model wrote it, for the client to say what is wrong"


class VerbatimCalls(Struct, frozen=True):
    """How a client parses calls in its own XML, for the reader. ``model`` is the id that the client requested."""

    client: XmlClient
    model: str

    @property
    def reasoning_tags(self) -> frozenset[str]:
        """Tags around reasoning that the client itself removes from the text."""
        return self.client.reasoning_tags

    def open(self, name: str) -> CallEndFinder | None:
        """A finder for the end of a call, to be fed after its opening tag; None if the client has no such tool."""
        return CallEndFinder(self.client.grammar, name) if name in self.client.tags else None

    def read(self, text: str) -> Element | None:
        """The call as the client parses it; None if it finds none or misreads a value."""
        call = _parse_call(self.client, self.model, text)
        if call is None or _is_misread(self.client, call, text):
            return None
        lacking = not _has_required(self.client, call)
        return Element(call.tags, not (call.complaint or lacking), lacking)


def find_call(client: XmlClient, text: str) -> str:
    """The first call in the client's own XML in a text, without surrounding text; "" if there is none."""
    opener = client.opener.search(text)
    if opener is None:
        return ""
    end = CallEndFinder(client.grammar, opener[1]).feed(text[opener.end() :])
    return text[opener.start() : opener.end() + end] if end >= 0 else ""


def _is_valid(client: XmlClient, call: XmlCallBlock, text: str) -> bool:
    """Whether the call has all required values, no complaint, and no misread value."""
    return not call.complaint and _has_required(client, call) and not _is_misread(client, call, text)


def _has_required(client: XmlClient, call: XmlCallBlock) -> bool:
    """Whether the call has all required values, in any accepted parameter set."""
    tool = client.tools.get(call.name)
    if tool is None:
        return False
    empty = {one.name for one in tool.parameters if one.may_be_empty}
    given = {name for name, value in call.tags.items() if value or name in empty}
    needed = {
        one.name for one in tool.parameters if one.required and not one.counts_lines_of and not one.may_be_missing
    }
    return (needed - set(tool.one_of) <= given and (not tool.one_of or not given.isdisjoint(tool.one_of))) or any(
        given.issuperset(form) for form in tool.alternatives
    )


def _is_misread(client: XmlClient, call: XmlCallBlock, text: str) -> bool:
    """Whether a value was cut because it is too long, or tags inside file content are parsed as parameters too.

    A file with a closing tag in its content may be parsed completely, and the tags in its content as parameters
    besides: the file would be written to a path that its content names.
    """
    most, values = client.grammar.max_value_length, dict(call.tags)
    content = values.pop(CONTENT_TAG, "") if call.name == WRITE_TOOL else ""
    if most and any(utf16_length(value) + len(name) + 3 > most for name, value in values.items()):
        return True
    if CONTENT_CLOSER not in content and not (most and utf16_length(content) + len(CONTENT_CLOSER) > most):
        return False
    before, _, behind = text.partition(content)
    blocks = client.parse(client.grammar, before + behind)
    call_ = blocks[0] if len(blocks) == 1 else None
    return not isinstance(call_, XmlCallBlock) or {**call_.tags, CONTENT_TAG: ""} != {**values, CONTENT_TAG: ""}


def _parse_call(client: XmlClient, model: str, text: str) -> XmlCallBlock | None:
    """The call as the client parses it, if the text is one complete call."""
    blocks = client.read(text, model)
    call = blocks[0] if len(blocks) == 1 else None
    return call if isinstance(call, XmlCallBlock) and not call.partial else None


def keep_call(client: XmlClient, model: str, name: str, arguments: str, written: str) -> RenderedCall | None:
    """The call as written, or rendered with the same meaning; None if it cannot be parsed.

    Args:
        name, arguments: the call as the general reader parsed it.
        written: the text that it parsed, with anything around the call.
    """
    text = find_call(client, written)
    call = _parse_call(client, model, text) if text else None
    if call is not None and _is_valid(client, call, text):
        return RenderedCall(call.name, text)
    if call is not None and _is_misread(client, call, text):
        call = None
    rendered = _rerender_call(client, model, name, arguments, call)
    if call is None or (rendered is not None and rendered.text):
        return rendered
    return RenderedCall(call.name, text, notes=(SENT_AS_WRITTEN,))


def _rerender_call(
    client: XmlClient, model: str, name: str, arguments: str, call: XmlCallBlock | None
) -> RenderedCall | None:
    """Render the call as the general reader parsed it, with the values that the client parsed, if any."""
    tool = client.find_tool(name)
    try:
        given = parse_strict_json(arguments)
    except MalformedValue:
        return None
    if tool is None or not isinstance(given, dict):
        return None
    decoded = _decode_texts(client, tool, given, model)
    if call is not None and call.name == tool.name and not call.complaint:
        decoded |= {key: value for key, value in call.params.items() if tool.find_parameter(key) is not None}
    return render_call(client, model, name, dump(given | decoded), fill=False)


def has_value(client: XmlClient, model: str, text: str) -> bool:
    """Whether the client parses a value in this call."""
    call = _parse_call(client, model, text) if text else None
    return call is not None and any(call.tags.values())


def keep_rejected(client: XmlClient, model: str, written: str, last: bool = False) -> RenderedCall | None:
    """A call that the general reader rejected but the client parses: the client reports what is wrong.

    An incomplete call may be a mention of the tool; it counts as a call only at the end of a message (``last``).
    """
    text = find_call(client, written)
    call = _parse_call(client, model, text) if text == written.strip() else None
    if call is None or _is_misread(client, call, text) or not (last or _has_required(client, call)):
        return None
    return RenderedCall(call.name, text, notes=(SENT_AS_WRITTEN,))


def _decode_texts(client: XmlClient, tool: ClientTool, given: dict[str, Value], model: str) -> dict[str, Value]:
    """The values given as text, decoded as the tool of the client does."""
    texts = {name: value for name, value in given.items() if isinstance(value, str) and not isinstance(value, Number)}
    named = {known.name if (known := tool.find_parameter(name)) else name: name for name in texts}
    tags = {
        name: texts[own] if name in client.grammar.untrimmed else trim_value(client.grammar, name, texts[own])
        for name, own in named.items()
    }
    decoded, complaint = decode_values(tool, tags, model)
    return {} if complaint else {named.get(name, name): value for name, value in decoded.items()}
