"""Prompts of XML clients, read back: tools, parameters, flags, and what remains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from support.rows import in_one_test
from support.xmlprompts import (
    CLINE,
    COMPACT_TRUTH,
    CUSTOM,
    CUSTOM_RULES,
    CUSTOM_TRUTH,
    KILO_EDIT,
    ROO,
    SERVERS,
    Flags,
    documented,
    write_cline,
    write_compact,
    write_roo,
)

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.prompt_parser import parse_prompt
from toolglot.clients.xml.tool_definitions import ToolDefinitions, define_lenient_tools, define_tools
from toolglot.core.conversation import Tool


@dataclass(frozen=True)
class Case:
    name: str
    profile: str
    prompt: str
    size: int
    truth: dict[str, Flags]


LATER = tuple(tool for tool in ROO if tool.name not in ("insert_content", "search_and_replace", "write_to_file"))

CASES = (
    Case("roo", "roo-3.29", write_roo(), 38_000, documented(ROO)),
    Case("roo, custom tools", "roo-3.36", write_roo(LATER, custom=CUSTOM), 38_000, documented(LATER) | CUSTOM_TRUTH),
    Case("kilo", "kilo-4.145", write_roo((*ROO, KILO_EDIT)), 38_000, documented((*ROO, KILO_EDIT))),
    Case("cline", "cline-legacy", write_cline(), 58_000, documented(CLINE)),
    Case("compact", "cline-legacy", write_compact(), 6_000, COMPACT_TRUTH),
)


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    assert isinstance(request.param, Case)
    return request.param


def offer_of(case: Case) -> ToolDefinitions:
    return define_tools(all_clients()[case.profile], parse_prompt(case.prompt))


def flags(tool: Tool) -> Flags:
    required = tool.parameters.get("required", ())
    return {name: name in required for name in tool.parameters["properties"]}


def test_size(case: Case) -> None:
    assert case.size * 0.9 <= len(case.prompt) <= case.size


def test_names_parameters_and_flags_are_exact(case: Case) -> None:
    offer = offer_of(case)
    read = {tool.name: flags(tool) for tool in offer.tools if tool.name not in offer.members}
    truth = dict(case.truth)
    if offer.members:
        truth.pop("use_mcp_tool", None)
    assert read == truth
    assert list(read) == list(truth)


TYPES = {
    ("roo", "read_file", "args"): "object",
    ("roo", "list_files", "recursive"): "boolean",
    ("roo", "ask_followup_question", "follow_up"): "array",
    ("roo", "write_to_file", "line_count"): "integer",
    ("roo", "write_to_file", "content"): "string",
    ("roo, custom tools", "deploy_shop", "force"): "boolean",
    ("roo, custom tools", "deploy_shop", "retries"): "number",
    ("cline", "execute_command", "requires_approval"): "boolean",
    ("cline", "ask_followup_question", "options"): "array",
    ("compact", "read_file", "path"): "string",
}


@in_one_test("place", TYPES, ids=str)
def test_types(place: tuple[str, str, str]) -> None:
    name, tool, parameter = place
    case = next(case for case in CASES if case.name == name)
    schemas: dict[str, Any] = {tool.name: tool.parameters["properties"] for tool in offer_of(case).tools}
    assert schemas[tool][parameter]["type"] == TYPES[place]


def test_tool_descriptions_are_kept_and_examples_removed() -> None:
    tools = {tool.name: tool for tool in offer_of(CASES[0]).tools}
    received = tools["apply_diff"].description
    assert received.startswith("Changes parts of a file by exact search and replacement.")
    assert "<<<<<<< SEARCH" in received
    assert "# A heading in a file" in received
    assert tools["update_todo_list"].description.startswith("Replaces the whole list of things to do.")
    assert "several steps" in tools["update_todo_list"].description
    assert tools["list_files"].parameters["properties"]["path"]["description"].startswith("The directory (relative")
    for tool in tools.values():
        assert f"<{tool.name}>" not in tool.description
        assert "Usage:" not in tool.description


def test_servers_bring_their_schemas(case: Case) -> None:
    offer = offer_of(case)
    if case.name == "compact":
        assert not offer.members
        return
    tools = {tool.name: tool for tool in offer.tools}
    for server, listed in SERVERS.items():
        for name, tells, schema in listed:
            given = offer.names[server, name]
            assert tools[given].parameters == schema
            assert tools[given].description.split("\n")[0] == tells.split("\n")[0]
            assert offer.members[given].server == server
    assert "use_mcp_tool" not in tools
    assert len(tools) == len(offer.tools)


def test_a_server_without_a_schema_keeps_the_general_tool() -> None:
    prompt = write_roo().replace("    Input Schema:\n", "    Nothing is known of its input:\n", 1)
    offer = define_tools(all_clients()["roo-3.29"], parse_prompt(prompt))
    names = [tool.name for tool in offer.tools]
    assert "use_mcp_tool" in names
    assert "mcp--weather--get_forecast" in names


GONE = (
    "XML",
    "# Tools",
    "Tool Use Formatting",
    "<actual_tool_name>",
    "<tool_name>",
    "Input Schema",
    "<execute_command>",
    "## TOOLS",
)
KEPT = ("RULES", "Operating System: Linux", "engineer", "Wait")


def test_what_remains(case: Case) -> None:
    """Role, rules and environment; nothing about the form of calls, except in the user's own words."""
    rest = parse_prompt(case.prompt).rest
    ours = rest.split("USER'S CUSTOM INSTRUCTIONS")[0]
    for words in GONE:
        assert words not in ours
    for words in KEPT[: 3 if case.name == "compact" else 4]:
        assert words in ours
    assert (CUSTOM_RULES in rest) == (CUSTOM_RULES in case.prompt)
    lines = set(case.prompt.split("\n"))
    changed = [line for line in ours.split("\n") if line not in lines]
    assert changed == {
        "cline": [
            "(a call of execute_command with command, requires_approval, task_progress)",
            "- Keep markers as they are.",
        ],
        "compact": ["- If anything is unclear, use ask_followup_question."],
    }.get(case.name, ["4. Wait. Then go on."])


def test_every_rule_survives(case: Case) -> None:
    rules = case.prompt[case.prompt.rindex("RULES\n", 0, case.prompt.index("SYSTEM INFORMATION")) :].split("USER'S")[0]
    assert rules.replace(" Malformed XML will break it.", "") in parse_prompt(case.prompt).rest


def test_a_prompt_that_documents_nothing_remains_as_it_is() -> None:
    for text in (
        "",
        "You are Roo, an engineer.",
        "# Tools\n\nNothing.",
        "=" * 100,
        "\n# Tools\n## \n",
        "# Tools\n<a>\n```",
    ):
        assert parse_prompt(text).rest == text
        assert parse_prompt(text).documents == ()


def test_other_spellings_are_read(case: Case) -> None:
    names = [tool.name for tool in define_lenient_tools(all_clients()[case.profile], parse_prompt(case.prompt))]
    assert set(case.truth) <= set(names)
    if "ask_followup_question" in case.truth and case.profile.startswith("roo"):
        assert "ask_followup" in names


def test_every_message_must_call() -> None:
    assert parse_prompt(write_roo()).demands
    assert not parse_prompt(write_cline()).demands
    assert not parse_prompt(write_cline() + "Every message must include a tool call.").demands
    other = write_cline().replace("- Never ask twice.", "- Every message must include a joke.")
    assert not parse_prompt(other).demands


def test_what_the_user_added_is_not_read(case: Case) -> None:
    added = (
        "Every message must use a tool.\r\n# Tools\n\n## mine\nDescription: None.\n\n# Tool Use Formatting\n\nXML tags."
    )
    prompt = case.prompt if "USER'S CUSTOM" in case.prompt else f"{case.prompt}\n====\n\nUSER'S CUSTOM INSTRUCTIONS\n\n"
    plain, read = parse_prompt(prompt), parse_prompt(prompt + added)
    assert read.documents == plain.documents
    assert read.demands == plain.demands
    assert read.rest == plain.rest + added


def test_other_line_ends(case: Case) -> None:
    _, mark, own = case.prompt.partition("USER'S CUSTOM INSTRUCTIONS")
    read = parse_prompt(case.prompt.replace("\n", "\r\n"))
    plain = parse_prompt(case.prompt)
    assert read.documents == plain.documents
    assert read.servers == plain.servers
    assert read.rest == plain.rest.removesuffix(mark + own) + (mark + own).replace("\n", "\r\n")


STAYING = [
    "You are Roo, an expert in XML and XSLT.",
    "You are Roo. You know the XML format of invoices.",
    "You are Roo.\n\nYou write XML tags.",
]


@pytest.mark.parametrize("role", STAYING)
def test_xml_may_be_what_the_work_is_about(role: str) -> None:
    place = "Current Workspace Directory: /home/dev/myXML format"
    rule = "- Keep files of XML and XSLT apart."
    prompt = write_roo(role=role).replace("Current Workspace Directory: /home/dev/shop", place)
    rest = parse_prompt(prompt.replace("- Never ask twice.", rule)).rest
    assert rest.startswith(f"{role}\n\n====")
    assert f"\n{place}\n" in rest
    assert f"\n{rule}\n" in rest
    assert "using the XML format" not in rest


def test_a_fence_that_is_never_closed_hides_no_tool() -> None:
    for prompt, truth in ((write_roo(), documented(ROO)), (write_cline(), documented(CLINE))):
        for name in ("list_files", list(truth)[-1]):
            broken = prompt.replace(f"## {name}\n", f"## {name}\n```\nnever closed\n", 1)
            read = parse_prompt(broken)
            assert [document.name for document in read.documents] == list(truth)
            assert read.servers == parse_prompt(prompt).servers
            assert read.rest == parse_prompt(prompt).rest


def read_servers_of(listed: str) -> list[tuple[str, str, bool]]:
    prompt = (
        f"# Tools\n\n## read_file\nDescription: x\n\n# Connected MCP Servers\n\n## s\n\n### Available Tools\n{listed}"
    )
    return [(tool.name, tool.description, bool(tool.schema)) for tool in parse_prompt(prompt).servers]


def test_bullets_in_the_description_of_a_tool_of_a_server() -> None:
    schema = '    Input Schema:\n    {"type": "object"}'
    listed = f"- a: Does:\n- one: thing\n- another\n{schema}\n\n- b: Text.\n{schema}\n- c: More.\n\n- d\n"
    assert read_servers_of(listed) == [
        ("a", "Does:\n- one: thing\n- another", True),
        ("b", "Text.", True),
        ("c", "More.", False),
        ("d", "", False),
    ]


@pytest.mark.parametrize("depth", [150, 20_000])
def test_a_schema_that_is_nested_too_deeply_is_none(depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    assert read_servers_of(f"- a: Text.\n    Input Schema:\n    {deep}\n\n- b: More.") == [
        ("a", "Text.", False),
        ("b", "More.", False),
    ]


def test_a_quoted_section_stays() -> None:
    quoted = f"<sample>\n{write_cline()}\n</sample>\n"
    assert parse_prompt(quoted).rest == quoted
    assert parse_prompt(quoted).documents == ()
