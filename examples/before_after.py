"""Prints both directions of the transformation, before and after: tools as a prompt, calls in text as OpenAI calls.

    pip install toolglot
    python examples/before_after.py

Everything under "after" is made by the library while it is printed; no server is needed. docs/before-after.md shows
what a gateway makes of requests and answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import toolglot
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolResult

DIALECT = "roo_xml"


def define(name: str, description: str, required: dict[str, str], optional: dict[str, str] | None = None) -> Any:
    """A tool; parameters are "type - description"."""
    both = {**required, **(optional or {})}
    split = {key: value.split(" - ") for key, value in both.items()}
    properties = {key: {"type": kind, "description": text} for key, (kind, text) in split.items()}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


READ = define(
    "read",
    "Read a file from the filesystem with line numbers",
    {"filePath": "string - Absolute path to the file"},
    {"offset": "number - Line number to start reading from", "limit": "number - Number of lines to read"},
)
BASH = define(
    "bash",
    "Execute a bash command in a persistent shell session",
    {"command": "string - The command to execute", "description": "string - Clear description of the command"},
    {"timeout": "number - Timeout in milliseconds"},
)
WRITE = define(
    "write",
    "Write content to a file, creating it if it doesn't exist",
    {"file_path": "string - Absolute path to the file", "content": "string - Content to write to the file"},
)
COPY: Any = {
    "type": "function",
    "function": {
        "name": "copy",
        "description": "Copy files",
        "parameters": {
            "type": "object",
            "properties": {
                "files": {"type": "array", "items": {"type": "string"}},
                "recursive": {"type": "boolean"},
                "options": {
                    "type": "object",
                    "properties": {"timeout": {"type": "number"}, "retries": {"type": "integer"}},
                },
            },
            "required": ["files"],
        },
    },
}
TOOLS = [READ, BASH, WRITE]

ANSWERS = {
    "A call with one parameter": """I'll read the package.json file to see the dependencies.

<read>
<filePath>/home/user/project/package.json</filePath>
</read>
""",
    "Numbers are numbers where the schema says so": """I'll install the axios package using npm.

<bash>
<command>npm install axios</command>
<description>Install axios HTTP client library</description>
<timeout>60000</timeout>
</bash>
""",
    "A file with several lines, and a closing tag in it": """I'll create a new page.

<write>
<file_path>/site/page.html</file_path>
<content>
<p>A value ends with </content>, unless more of it follows.</p>
{
  "timeout": 5000
}
</content>
</write>
""",
    "Lists, objects and booleans": """<copy>
<files>
  <item>file1.js</item>
  <item>file2.js</item>
</files>
<recursive>true</recursive>
<options>
  <timeout>5000</timeout>
  <retries>3</retries>
</options>
</copy>
""",
    "No call": "The package.json file contains 2 dependencies: express and axios.",
    "A closing tag that is missing": """I'll read the file.

<read>
<filePath>/path/to/file
</read>
""",
    "A tool that was not offered": """<unlink>
<path>/etc/hosts</path>
</unlink>
""",
    "Two calls in one answer": """<read>
<filePath>/file1.js</filePath>
</read>

<read>
<filePath>/file2.js</filePath>
</read>
""",
}

PIECES = ["I'll ", "read ", "the ", "file.\n\n<read", ">\n<file", "Path>/src/app.js</filePath>\n</read>"]


def block(language: str, text: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def to_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def to_message(reading: toolglot.Reading) -> dict[str, Any]:
    """An answer as the message of a chat completion."""
    choice: dict[str, Any] = {"message": {"role": "assistant", "content": reading.text or None}}
    if reading.calls:
        choice["message"]["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reading.calls
        ]
    return choice | {"finish_reason": "tool_calls" if reading.calls else "stop"}


def to_deltas(pieces: list[str]) -> Iterator[dict[str, Any]]:
    """The pieces of a stream as the deltas of chunks, as soon as each can be known."""
    reader = toolglot.Reader(TOOLS)
    events = [event for piece in pieces for event in reader.feed(piece)] + reader.close()
    for event in events:
        match event:
            case toolglot.TextDelta(text=text):
                yield {"content": text}
            case toolglot.CallStarted(index=index, id=number, name=name):
                function = {"name": name, "arguments": ""}
                yield {"tool_calls": [{"index": index, "id": number, "type": "function", "function": function}]}
            case toolglot.CallArguments(index=index, fragment=fragment):
                yield {"tool_calls": [{"index": index, "function": {"arguments": fragment}}]}


def print_tools() -> None:
    print("## Tools: OpenAI definitions become a prompt\n")
    for tool in TOOLS:
        taught = toolglot.teach([tool], DIALECT)
        print(f"### {tool['function']['name']}\n\nBefore:\n\n{block('json', to_json(tool))}\nAfter, in the prompt:\n")
        print(block("xml", taught.split("<tools>\n")[1].split("\n</tools>")[0]))
    print(f"### The whole prompt of two tools\n\n{block('text', toolglot.teach([READ, BASH], DIALECT))}")


def print_answers() -> None:
    print("## Answers: calls in text become OpenAI calls\n")
    for title, text in ANSWERS.items():
        reading = toolglot.read(text, [*TOOLS, COPY])
        print(
            f"### {title}\n\nBefore:\n\n{block('text', text)}\nAfter:\n\n{block('json', to_json(to_message(reading)))}"
        )
        for call in reading.calls:
            if call.repairs:
                print(f"Repaired: {', '.join(call.repairs)}; confidence {call.confidence}.\n")
    lines = "\n".join(json.dumps(delta) for delta in to_deltas(PIECES))
    print(f"### A stream\n\nBefore, in pieces:\n\n{block('json', json.dumps(PIECES))}\nAfter, one delta in a line:\n")
    print(block("json", lines))


def print_cycle() -> None:
    """A conversation with a call and its result, as a model without tools gets it."""
    function = READ["function"]
    call = ToolCall("call_1", "read", '{"filePath":"/home/user/package.json"}')
    messages = (
        Message("user", (Text("What's in the package.json file?"),)),
        Message("assistant", (Text("I'll read it."), call)),
        Message("tool", (ToolResult("call_1", "read", (Text('{"dependencies":{"express":"^4.18.0"}}'),)),)),
    )
    tool = Tool(function["name"], function["description"], function["parameters"])
    spoken = toolglot.speak(Conversation("qwen3-max", messages, (tool,)), DIALECT).conversation
    print("## A call and its result in the next request\n\nAfter (the system prompt is the one above):\n")
    shown = [{"role": message.role, "content": message.text} for message in spoken.messages if message.role != "system"]
    print(block("json", to_json(shown)))


def main() -> None:
    print("# Before and after\n")
    print_tools()
    print_answers()
    print_cycle()


if __name__ == "__main__":
    main()
