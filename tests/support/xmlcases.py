"""Calls that are hard to write for XML clients, made by the thousand from a seed; for the fuzz tests and the bench."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.profile import ClientParameter, ClientTool, ValueKind
from toolglot.clients.xml.response_renderer import ResponseRenderer
from toolglot.clients.xml.verbatim_calls import VerbatimCalls
from toolglot.core.events import Event, Finished, TextDelta
from toolglot.core.options import Options
from toolglot.core.schema.toolset import CompiledTools, compile_tools
from toolglot.gateway.delivery_plan import DeliveryPlan
from toolglot.gateway.telemetry.recorder import RequestRecorder
from toolglot.gateway.xml_delivery import XmlDelivery
from toolglot.reading.reader import Reader

MODELS = ("qwen3-coder-plus", "claude-sonnet-4", "gemini-2.5-pro")
PIECES = (
    *("a", "b c", "return x", "  indented", "\t", "\n", "\n\n", "\r\n", " ", "'", '"', "`", "\\", "{}", "%s", "0"),
    *("<", ">", "&", ";", "</", "/>", "< b", "<b>", "</b>", "<br/>", "]]>", "<![CDATA[", "<!--", "-->", "<?x"),
    *("&lt;", "&gt;", "&amp;", "&quot;", "&apos;", "&#39;", "&#91;", "&lsqb;", "&amp;lt;", "&amp;amp;", "&amp;apos;"),
    *("&#x41;", "&nbsp;", "&copy;", "&lt", "lt;", "amp;", "```", "```python\n", "\n```", "``", "~~~"),
    *("12 | x\n", "3 | y", "1 || z", "é", "日本", "😀", "\u200b", "\ufeff", "\u3000", "\ufffd", "\x85", "\x0b", "\x1f"),
    *(
        "<<<<<<< SEARCH\n",
        "=======\n",
        ">>>>>>> REPLACE",
        "------- SEARCH\n",
        "$(x)",
        "<id>1</id>",
        "<think>",
        "\u2028",
    ),
    *("<file>", "</file>", "<suggest>", "</suggest>", '<suggest mode="code">', "<path>evil</path>", "</path>", "null"),
    *("\\\\@", "\\\\\\@a"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One call, and what the client's tool must be given."""

    client: XmlClient
    model: str
    tool: ClientTool
    given: dict[str, Any] = field(default_factory=dict)
    expected: dict[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> str:
        return json.dumps(self.given, ensure_ascii=False)


def make_case(random: Random, client: XmlClient, model: str, tool: ClientTool, only: str = "") -> Case:
    """A call with hostile values, in most cases; with ``only`` in this parameter and no other."""
    case = Case(client, model, tool)
    most = random.random() < 0.85
    for parameter in tool.parameters:
        nested = tool.one_of and parameter.name != tool.one_of[0]
        wanted = parameter.required or parameter.name == only or random.random() < 0.3
        if parameter.counts_lines_of or nested or not wanted:
            continue
        hostile = parameter.name == only if only else most
        given, expected = make_value(random, client, tool, parameter, hostile)
        case.given[parameter.name], case.expected[parameter.name] = given, expected
    return case


def make_value(
    random: Random, client: XmlClient, tool: ClientTool, parameter: ClientParameter, hostile: bool = True
) -> tuple[Any, Any]:
    """A value as the model writes it, and as the tool must be given it, numbers as text."""

    def text() -> str:
        return make_text(random, client, tool, parameter, hostile)

    match parameter.kind:
        case ValueKind.NUMBER:
            number = random.randint(0, 9999)
            return random.choice((number, str(number))), str(number)
        case ValueKind.FLAG:
            flag = random.random() < 0.5
            return random.choice((flag, str(flag))), flag
        case ValueKind.JSON:
            value: Any = {"key": text(), text(): [1, 2.5, None, True, {"deep": text()}]}
            return random.choice((value, json.dumps(value))), value
        case ValueKind.LIST:
            texts = [text() for _ in range(random.randint(1, 3))]
            return texts, texts
        case ValueKind.FILES:
            files: list[dict[str, Any]] = [{"path": text()} for _ in range(random.randint(1, 3))]
            if random.random() < 0.5:
                files[0]["line_range"] = ["1-20", "30-40"]
            return {"file": files}, {"file": files}
        case ValueKind.SUGGESTIONS:
            answers = [{"text": text()} for _ in range(random.randint(1, 4))]
            if random.random() < 0.5:
                answers[0]["mode"] = "code"
            return answers, answers
        case _:
            written = text()
            if hostile and parameter.name == "path" and random.random() < 0.1:
                written += ".xml"
            return written, written


def make_text(random: Random, client: XmlClient, tool: ClientTool, parameter: ClientParameter, hostile: bool) -> str:
    if not hostile:
        return "-".join(random.choices(("alpha", "beta & gamma", "x.y", "ä", "a b"), k=random.randint(1, 4)))
    if random.random() < 0.001:
        return make_long(random, parameter)
    own = (f"</{parameter.name}>", f"<{parameter.name}>", f"</{tool.name}>", f"<{tool.name}>")
    tags = random.choices(sorted(client.tags), k=2) + random.choices(sorted(client.grammar.parameters), k=2)
    others = [f"<{tag}>" for tag in tags] + [f"</{tag}>" for tag in tags]
    count = random.choice((1, 1, 2, 3, 5, 9, 20))
    pools = random.choices((PIECES, own, others), weights=(8, 2, 1), k=count)
    return "".join(map(random.choice, pools)) or "x"


def make_long(random: Random, parameter: ClientParameter) -> str:
    """About as long as a client reads, and a bit more."""
    line = random.choice(
        ("value = compute(alpha)\n", "a < b &lt; c\n", f"x</{parameter.name}>\n", "😀é\n", "<path>p</path>")
    )
    return line * (random.choice((60_000, 99_000, 102_400, 110_000)) // len(line))


SNIPPETS = (
    *("if (a < b) {}\n", "for i in range(3):\n    print(i)\n", '<div class="x">\n  <p>a &amp; b</p>\n</div>\n'),
    *("List<Map<String, Integer>> x;", "const s = '</p>';", "a && b || c > d", "- [ ] a\n- [x] b", "\\\\@x", "12 | a"),
    *("<![CDATA[x]]>", "<![CDATA[", "<root><![CDATA[ a ]]></root>", "```python\nx\n```", "```", "~~~"),
    *("see `<parameter=path>` here", '{"name": "read_file", "arguments": {}}', "<tool_call>{}</tool_call>"),
    *(
        "</tool_call>",
        "<function=x>",
        "<|im_start|>assistant",
        '<invoke name="x">',
        "[TOOL_CALLS]",
        "<think>hm</think>",
    ),
)
"""What stands in files and commands, and marks of other dialects."""
FOREIGN = (
    *("<note>why < not</note>", "<explanation>a </b> c</explanation>", '<description x="1">d</description>', "<b/>"),
    *("<requires_approval>false</requires_approval>", "<line_count>3</line_count>", "<timeout>5</timeout>"),
    *("<task_progress>\n- [ ] a\n</task_progress>", "<id>call_1</id>", "<Path>a</Path>", "<path >a</path>", "<note>"),
)
"""Elements that a tool does not have."""


def make_own(random: Random, client: XmlClient, hostile: bool) -> str:
    """A call in the client's own XML with contents of files, foreign elements, repeated and reordered parameters;
    ``hostile`` with closing tags in values, tags that are left out, and tags of other tools too."""
    tool = random.choice([tool for tool in client.tools.values() if tool.parameters])
    marks = [f"</{one.name}>" for one in tool.parameters] + [f"</{tool.name}>", f"<{tool.name}>", "<path>", "</path>"]
    elements = []
    for parameter in tool.parameters:
        if parameter.required or random.random() < 0.4:
            elements.append(_write_element(random, parameter, marks if hostile else []))
            if hostile and random.random() < 0.1:
                elements.append(_write_element(random, parameter, marks))
    elements += random.choices(FOREIGN, k=random.choice((0, 1, 2)))
    random.shuffle(elements)
    if hostile and elements and random.random() < 0.1:
        elements[random.randrange(len(elements))] = random.choice(marks)
    gap = random.choice(("\n", "\n", "", "\n  "))
    return gap.join([f"<{tool.name}>", *elements, f"</{tool.name}>"])


def _write_element(random: Random, parameter: ClientParameter, marks: list[str]) -> str:
    name = parameter.name
    value = "".join(random.choice(SNIPPETS) for _ in range(random.randint(1, 4))).replace(f"</{name}>", "")
    if marks and random.random() < 0.4:
        value += random.choice(marks) + random.choice(SNIPPETS)
    nested = {
        ValueKind.NUMBER: "3",
        ValueKind.FLAG: "true",
        ValueKind.JSON: json.dumps({"a": value}),
        ValueKind.LIST: '["a", "b"]',
        ValueKind.FILES: "<file><path>a</path></file><file><path>b</path><line_range>1-2</line_range></file>",
        ValueKind.SUGGESTIONS: '<suggest mode="code">a &lt; b</suggest><suggest>c</suggest>',
    }
    inside = nested.get(parameter.kind, value)
    return f"<{name}>\n{inside}\n</{name}>" if parameter.kind is ValueKind.BLOCK else f"<{name}>{inside}</{name}>"


def deliver(client: XmlClient, pieces: Iterable[str], model: str = "qwen3", finish: str = "stop") -> list[str]:
    """The text that the client receives of an answer of a text model, piece by piece."""
    return [event.text for event in deliver_answer(client, pieces, model, finish) if isinstance(event, TextDelta)]


def deliver_answer(client: XmlClient, pieces: Iterable[str], model: str = "qwen3", finish: str = "stop") -> list[Event]:
    """The events that the client receives of an answer of a text model.

    Args:
        pieces: the answer as it comes.
        finish: how it ends.
    """
    options = Options(unknown_tools="reject", parallel=False, elements=VerbatimCalls(client, model))
    reader = Reader.prepared(_compile_for(client), "roo_xml", options, lambda: "call")
    watch = RequestRecorder("req", "openai_chat", 0, 0, lambda: 0.0)
    rendition = XmlDelivery(ResponseRenderer(client, model), reader, watch, DeliveryPlan())
    events: list[Event] = [*map(TextDelta, pieces), Finished(finish)]
    return [received for event in events for received in rendition.deliver([event])]


_COMPILED: dict[int, tuple[XmlClient, CompiledTools]] = {}


def _compile_for(client: XmlClient) -> CompiledTools:
    """The tools of a client. They are found by its identity: to compare two clients takes longer than to read a call."""
    known, compiled = _COMPILED.get(id(client), (None, None))
    if known is not client or compiled is None:
        compiled = compile_tools(client.list_tools(lenient=True), ())
        _COMPILED[id(client)] = client, compiled
    return compiled
