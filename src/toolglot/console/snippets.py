"""A recorded turn as something to paste: a curl command, Python, a test sample as in tests/data/dialects."""

from __future__ import annotations

import json
import re
from typing import Final

import msgspec

from toolglot.config import Settings
from toolglot.console.turns import decode_conversation, divide, find_tools, read_trace
from toolglot.core.conversation import Tool
from toolglot.core.schema.toolset import compile_tools
from toolglot.gateway.telemetry.trace import TEXT
from toolglot.reading.reader import Reading, read
from toolglot.store.interface import RecordRow
from toolglot.wires import all_wires

TOOLS_NAME: Final = "recorded"
MAX_ARGUMENT: Final = 100_000
"""Bytes of a body that is an argument; Linux allows 131,072."""
UNKEEPABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
"""Characters that an editor or Git would not keep; a fence marked ``escaped`` shows them."""
PYTHON: Final = """\
import json
import os
import urllib.request

BODY = json.loads({body})
request = urllib.request.Request(
    {address},
    json.dumps(BODY).encode(),
    {{"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("TOOLGLOT_KEY", "none")}},
)
with urllib.request.urlopen(request) as response:
    for line in response:
        print(line.decode(), end="")
"""


def write_snippets(row: RecordRow, address: str, settings: Settings) -> dict[str, object]:
    """The snippets by name. ``samples`` has one for each attempt with text; they and ``tools`` are empty if the model's
    own text was not recorded."""
    body = row.bodies["request"].decode("utf-8", "replace")
    record = msgspec.json.decode(row.data)
    wire = all_wires()[row.wire]
    target = address + wire.base_path + wire.locate(row.model, stream=bool(record.get("stream")))
    conversation = decode_conversation(wire, row.bodies["request"], row.model)
    tools = find_tools(conversation, str(record.get("agent", "")), settings.clients.xml)
    text, trace = row.bodies.get("model", b"").decode("utf-8", "replace"), read_trace(row.bodies.get("trace", b""))
    texts = divide(text, trace, TEXT, len(trace.attempts) + 1)
    return {
        "curl": write_curl(target, body),
        "python": PYTHON.format(body=repr(body), address=repr(target)),
        "samples": [write_sample(row, one, tools, str(record.get("dialect", ""))) for one in texts if one],
        "tools": describe_tools(tools) if text else "",
    }


def write_curl(target: str, body: str) -> str:
    """A command for a POSIX shell; the key comes from the environment. A body that is too long for an argument of a
    command is read from a here document."""
    command = (
        f"curl -sN {quote(target)} -H 'Content-Type: application/json'"
        ' -H "Authorization: Bearer ${TOOLGLOT_KEY:-none}" --data-binary'
    )
    if len(body.encode()) < MAX_ARGUMENT:
        return f"{command} {quote(body)}"
    end = "END"
    while end in body:
        end += "_"
    return f"{command} @- <<'{end}'\n{body}\n{end}\n"


def quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def describe_tools(tools: tuple[Tool, ...]) -> str:
    """The file ``tests/data/tools/recorded.json`` that the sample names."""
    functions = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters or {"type": "object"}}
        for tool in tools
    ]
    return json.dumps([{"type": "function", "function": one} for one in functions], ensure_ascii=False, indent=2) + "\n"


def write_sample(row: RecordRow, text: str, tools: tuple[Tool, ...], dialect: str) -> str:
    """The model's text and what is read from it today."""
    reading = read(text, compile_tools(tools, ()))
    used = next((call.dialect for call in reading.calls), dialect) or "a dialect"
    kind = "malformed" if reading.rejected or any(call.repairs for call in reading.calls) else "canonical"
    head = [
        f"# {used}: recorded from {' '.join(row.model.split()) or 'a model'}\n",
        f"- kind: {kind}\n- tools: {TOOLS_NAME}\n- why: Recorded as {row.id}.\n",
        "## Written\n",
        write_fence(text),
    ]
    return "\n".join([*head, *list_expected(reading)])


def list_expected(reading: Reading) -> list[str]:
    parts = ["## Read\n"]
    for call in reading.calls:
        parts += [f"### Call `{call.name}`\n", write_fence(call.arguments, "json")]
    if reading.text:
        parts += ["### Text\n", write_fence(reading.text)]
    if reading.reasoning:
        parts += ["### Reasoning\n", write_fence(reading.reasoning)]
    for rejected in reading.rejected:
        parts += [f"### Rejected `{rejected.reason}`\n", write_fence(rejected.raw)]
    return parts


def write_fence(text: str, language: str = "text") -> str:
    """A fence that is longer than any run of backticks in the text."""
    if UNKEEPABLE.search(text):
        text, language = re.sub(rf"\\|{UNKEEPABLE.pattern}", escape_character, text), f"{language} escaped"
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def escape_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    named = {"\\": "\\\\", "\r": "\\r"}.get(match[0])
    return named or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
