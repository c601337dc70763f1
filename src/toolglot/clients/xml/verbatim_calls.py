"""A call that the model wrote in the client's own XML.

Strategy. The client's own reading decides. If its parser (our port) finds a complete call of a known tool in the text,
with all that the tool needs and nothing that the tool complains of, the text goes on as it stands: entities, code
fences, tags that the client skips and all. The general reader is not asked what such a call means, only whether it is
one: it may be quoted, shown in code, or part of the reasoning.

Where something is missing or wrong, the general reader may know better: models use other names for parameters, and
write JSON that can be repaired. What the client read stays as the client read it, the rest comes from the reader, and
the call is rendered anew. If that cannot be, the text goes on as it stands, for the client to say what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolglot.clients.xml.call_renderer import Rendered, render_call
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.nested_parser import MalformedValue
from toolglot.clients.xml.parsers import CLOSE, CONTENT, WRITE, Boundary, trim_value, utf16
from toolglot.clients.xml.profile import ClientTool, XmlCallBlock
from toolglot.clients.xml.value_decoding import interpret, read_json
from toolglot.core.lenient_json import Number, Value, dump
from toolglot.core.options import Element

AS_WRITTEN: Final = "as the model wrote it, for the client to say what is wrong"


@dataclass(frozen=True, slots=True)
class VerbatimCalls:
    """How a client reads calls in its own XML, for the reader. ``model`` is the id that the client asked for."""

    client: XmlClient
    model: str

    @property
    def reasoning_tags(self) -> frozenset[str]:
        """Tags around reasoning that the client takes out of the text itself."""
        return self.client.asides

    def open(self, name: str) -> Boundary | None:
        """What finds the end of a call behind its opening tag; None if the client has no such tool."""
        return Boundary(self.client.grammar, name) if name in self.client.tags else None

    def read(self, text: str) -> Element | None:
        """The call as the client reads it; None if it reads none, or a value was torn apart."""
        call = _read_call(self.client, self.model, text)
        if call is None or _is_torn(self.client, call, text):
            return None
        lacking = not _has_all(self.client, call)
        return Element(call.tags, not (call.complaint or lacking), lacking)


def find_call(client: XmlClient, text: str) -> str:
    """The call in the client's own XML that stands in a text, without what is around it; "" if there is none."""
    opener = client.opener.search(text)
    if opener is None:
        return ""
    end = Boundary(client.grammar, opener[1]).feed(text[opener.end() :])
    return text[opener.start() : opener.end() + end] if end >= 0 else ""


def _is_sound(client: XmlClient, call: XmlCallBlock, text: str) -> bool:
    """Whether the client's tool has all that it needs, does not complain, and no value was torn apart."""
    return not call.complaint and _has_all(client, call) and not _is_torn(client, call, text)


def _has_all(client: XmlClient, call: XmlCallBlock) -> bool:
    """Whether the tool has all that it needs, in one of the forms that it takes."""
    tool = client.tools.get(call.name)
    if tool is None:
        return False
    empty = {one.name for one in tool.parameters if one.may_be_empty}
    given = {name for name, value in call.tags.items() if value or name in empty}
    needed = {one.name for one in tool.parameters if one.required and not one.counts and not one.spared}
    return (needed - set(tool.one_of) <= given and (not tool.one_of or not given.isdisjoint(tool.one_of))) or any(
        given.issuperset(form) for form in tool.forms
    )


def _is_torn(client: XmlClient, call: XmlCallBlock, text: str) -> bool:
    """Whether a value was cut because it is too long, or what stands in the content of a file counts outside it too.

    A file with a closing tag in its content may be read whole, and the tags in its content as parameters besides: then
    it would be written to a path that stands in it.
    """
    most, values = client.grammar.longest, dict(call.tags)
    content = values.pop(CONTENT, "") if call.name == WRITE else ""
    if most and any(utf16(value) + len(name) + 3 > most for name, value in values.items()):
        return True
    if CLOSE not in content and not (most and utf16(content) + len(CLOSE) > most):
        return False
    before, _, behind = text.partition(content)
    blocks = client.parse(client.grammar, before + behind)
    call_ = blocks[0] if len(blocks) == 1 else None
    return not isinstance(call_, XmlCallBlock) or {**call_.tags, CONTENT: ""} != {**values, CONTENT: ""}


def _read_call(client: XmlClient, model: str, text: str) -> XmlCallBlock | None:
    """The call as the client reads it, if the text is one complete call."""
    blocks = client.read(text, model)
    call = blocks[0] if len(blocks) == 1 else None
    return call if isinstance(call, XmlCallBlock) and not call.partial else None


def keep_call(client: XmlClient, model: str, name: str, arguments: str, written: str) -> Rendered | None:
    """The call as it was written, or with the same meaning; None where nothing is known of it.

    Args:
        name, arguments: the call as the general reader read it.
        written: the text that it read, with whatever stands around the call.
    """
    text = find_call(client, written)
    call = _read_call(client, model, text) if text else None
    if call is not None and _is_sound(client, call, text):
        return Rendered(call.name, text)
    if call is not None and _is_torn(client, call, text):
        call = None
    rendered = _render_anew(client, model, name, arguments, call)
    if call is None or (rendered is not None and rendered.text):
        return rendered
    return Rendered(call.name, text, notes=(AS_WRITTEN,))


def _render_anew(
    client: XmlClient, model: str, name: str, arguments: str, call: XmlCallBlock | None
) -> Rendered | None:
    """The call as the general reader read it, with the values that the client read, if it read any."""
    tool = client.find(name)
    try:
        given = read_json(arguments)
    except MalformedValue:
        return None
    if tool is None or not isinstance(given, dict):
        return None
    meant = _interpret(client, tool, given, model)
    if call is not None and call.name == tool.name and not call.complaint:
        meant |= {key: value for key, value in call.params.items() if tool.find(key) is not None}
    return render_call(client, model, name, dump(given | meant), fill=False)


def gives_value(client: XmlClient, model: str, text: str) -> bool:
    """Whether the client reads a value in this call."""
    call = _read_call(client, model, text) if text else None
    return call is not None and any(call.tags.values())


def keep_rejected(client: XmlClient, model: str, written: str, last: bool = False) -> Rendered | None:
    """A call that the general reader refused, if it is one to the client: the client says what is wrong with it.

    A call that lacks something may be a mention of the tool; only as the ``last`` thing of a message it is a call.
    """
    text = find_call(client, written)
    call = _read_call(client, model, text) if text == written.strip() else None
    if call is None or _is_torn(client, call, text) or not (last or _has_all(client, call)):
        return None
    return Rendered(call.name, text, notes=(AS_WRITTEN,))


def _interpret(client: XmlClient, tool: ClientTool, given: dict[str, Value], model: str) -> dict[str, Value]:
    """The values that stand between tags as text, as the client's tool would use them."""
    texts = {name: value for name, value in given.items() if isinstance(value, str) and not isinstance(value, Number)}
    named = {known.name if (known := tool.find(name)) else name: name for name in texts}
    tags = {
        name: texts[own] if name in client.grammar.kept else trim_value(client.grammar, name, texts[own])
        for name, own in named.items()
    }
    meant, complaint = interpret(tool, tags, model)
    return {} if complaint else {named.get(name, name): value for name, value in meant.items()}
