"""Encode a value so that the tool of the client receives exactly that value.

Strategy. Escape only what must be escaped: the model sees its own calls again in the history. Where the client
un-escapes, escape ``&`` before anything that looks like an entity, and ``<`` in a closing tag of the parameter inside
the value. Where the client drops code fences, add some for it to drop. Where it deletes a character, use that character
to protect whitespace from trimming. Everything else is written unchanged, and parsing it back decides whether that
works.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.nested_parser import escape_nested
from toolglot.clients.xml.parsers import CONTENT_TAG, WRITE_TOOL, utf16_length
from toolglot.clients.xml.profile import (
    JS_WHITESPACE,
    ClientParameter,
    ContentRewrite,
    Tolerance,
    Unescaping,
    ValueKind,
)
from toolglot.clients.xml.value_decoding import FENCE
from toolglot.core.lenient_json import Value, dump

BROKEN_OPENER = "<\u200b"
"""Start of a tag that is shown but not parsed: ``<`` and an invisible break character."""

_AMPERSAND = "&amp;"


def encode_parameter(
    client: XmlClient, tool: str, parameter: ClientParameter, value: Value, model: str, path: str
) -> str:
    """The XML element of one parameter."""
    name, closer = parameter.name, f"</{parameter.name}>"
    if isinstance(value, bool):
        return f"<{name}>{'true' if value else 'false'}{closer}"
    if isinstance(value, str):
        inside = _encode_text(client, tool, parameter, str(value), parameter.unescaping.for_request(model, path))
    elif parameter.kind is ValueKind.FILES and isinstance(value, dict):
        inside = _encode_files(value)
    elif parameter.kind is ValueKind.SUGGESTIONS and isinstance(value, list):
        inside = "\n" + "\n".join(map(_encode_suggestion, value)) + "\n"
    else:
        inside = dump(value).replace(closer, "\\u003c" + closer[1:])
    return f"<{name}>{inside}{closer}"


def _encode_text(client: XmlClient, tool: str, parameter: ClientParameter, value: str, undoing: Unescaping) -> str:
    closer = f"</{parameter.name}>"
    text = escape_entities(value, undoing) if undoing.entities else value
    if undoing.entities:
        too_long = client.limits.parameter and utf16_length(text) + len(closer) + 2 > client.limits.parameter
        # the client parses the rest of such a value as the inside of the tool, where every tag counts
        whole = too_long and (tool, parameter.name) == (WRITE_TOOL, CONTENT_TAG)
        text = text.replace("<", "&lt;") if whole else text.replace(closer, "&lt;" + closer[1:])
    elif undoing.deleted:
        text = text.replace(closer, "<" + undoing.deleted + closer[1:])
    elif parameter.tolerance is Tolerance.PROSE:
        text = text.replace(closer, BROKEN_OPENER + closer[1:])
    if ContentRewrite.ESCAPED_MENTIONS in parameter.rewrites:
        text = text.replace("\\\\@", "\\\\\\@")
    text = protect_ends(text, parameter, undoing.deleted)
    return f"\n{text}\n" if parameter.kind is ValueKind.BLOCK else text


def protect_ends(text: str, parameter: ClientParameter, vanishing: str) -> str:
    """Protect both ends from what the client removes there, as far as possible."""
    fenced = ContentRewrite.FENCES in parameter.rewrites or ContentRewrite.FENCES_TRIMMED in parameter.rewrites
    if vanishing and text:
        front = text[0] in JS_WHITESPACE or (fenced and text.startswith(FENCE))
        back = text[-1] in JS_WHITESPACE or (fenced and text.endswith(FENCE))
        return vanishing * front + text + vanishing * back
    return _add_fences(text, ContentRewrite.FENCES_TRIMMED in parameter.rewrites) if fenced else text


def _add_fences(text: str, trimmed: bool) -> str:
    """Add code fences for the client to drop, where it would drop those of the text."""
    seen = text.strip(JS_WHITESPACE) if trimmed else text
    front = f"{FENCE}\n" if seen.startswith(FENCE) else ""
    back = f"\n{FENCE}" if seen.endswith(FENCE) else ""
    return front + seen + back if front or back else text


def escape_entities(text: str, undoing: Unescaping) -> str:
    if "&" not in text:
        return text
    pattern, late = _compile_entities(undoing)
    # an entity un-escaped after &amp; would also match what un-escaping &amp; leaves
    return pattern.sub(lambda found: "&" + undoing.deleted if found[1] in late else _AMPERSAND, text)


@lru_cache(maxsize=16)
def _compile_entities(undoing: Unescaping) -> tuple[re.Pattern[str], frozenset[str]]:
    names = [entity[1:] for entity, _ in undoing.entities]
    late = names[names.index(_AMPERSAND[1:]) + 1 :] if undoing.deleted else []
    return re.compile(f"&(?=({'|'.join(map(re.escape, names))}))"), frozenset(late)


def _encode_files(value: dict[str, Value]) -> str:
    lines = [""]
    entries = value["file"]
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            ranges = entry.get("line_range", [])
            lines += ["  <file>", f"    <path>{escape_nested(str(entry['path']))}</path>"]
            lines += [f"    <line_range>{one}</line_range>" for one in (ranges if isinstance(ranges, list) else ())]
            lines.append("  </file>")
    return "\n".join([*lines, ""])


def _encode_suggestion(value: Value) -> str:
    if not isinstance(value, dict):
        return ""
    mode = f' mode="{value["mode"]}"' if "mode" in value else ""
    return f"<suggest{mode}>{value['text']}</suggest>"
