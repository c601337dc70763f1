"""Detection of XML clients: seed 000's ``isRooCodeClient``, and the evidence that it lacks."""

from __future__ import annotations

from support.rows import in_one_test
from support.xmlprompts import CLINE, ROO, Doc, write_cline, write_compact, write_roo

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.detection import DetectedClient, detect_client, parse_client_headers
from toolglot.core.conversation import Conversation, Message, Text, Tool

LATER = tuple(tool for tool in ROO if tool.name not in ("insert_content", "search_and_replace", "write_to_file"))
KILO = write_roo(role="You are Kilo Code, an engineer.")
GLM = write_compact().replace("Exact XML tags for tool + params", "Place all tool XML blocks in assistant messages")
NATIVE = (
    "You are Roo, an engineer.\n\nTOOL USE\n\nUse the provider-native tool-calling mechanism. No <actual_tool_name>."
)
CLOSED = "# Tools\n\n## read_file\nDescription: Reads.\n\nThe tool name itself becomes the XML tag name"

VERSIONS = {
    "3.25.21": "roo-3.29",
    "3.29.3": "roo-3.29",
    "3.29.4": "roo-3.30",
    "3.31.3": "roo-3.30",
    "3.32.0": "roo-3.32",
    "3.34.8": "roo-3.32",
    "3.35": "roo-3.35",
    "3.35.3": "roo-3.35",
    "3.35.5": "roo-3.35.4",
    "3.36.4": "roo-3.36.0",
    "3.36.5": "roo-3.36",
    "3.41.3": "roo-3.36",
}


def leave_out(*names: str) -> tuple[Doc, ...]:
    return tuple(tool for tool in ROO if tool.name not in names)


DEFINITIONS = Doc("list_code_definition_names", "Lists names.", [("path", "required", "Where to look.")])
BY_TOOLS = [
    (ROO, "roo-3.29"),
    (leave_out("search_and_replace"), "roo-3.35"),
    (leave_out("search_and_replace", "write_to_file"), "roo-3.35.4"),
    ((*LATER, DEFINITIONS), "roo-3.36.0"),
    (LATER, "roo-3.36"),
]
CASES = [
    (write_roo(), {}, "roo-3.29"),
    (write_roo(LATER), {}, "roo-3.36"),
    (write_roo(LATER), {"User-Agent": "RooCode/3.29.1"}, "roo-3.29"),
    (write_roo(), {"user-agent": "RooCode/3.36.16"}, "roo-3.36"),
    (write_roo(LATER), {"User-Agent": "RooCode/4.0.0"}, "roo-3.36"),
    *((write_roo(LATER), {"User-Agent": f"RooCode/{version}"}, profile) for version, profile in VERSIONS.items()),
    *((write_roo(tools), {}, profile) for tools, profile in BY_TOOLS),
    (write_roo(LATER), {"X-Title": "Roo Code"}, "roo-3.36"),
    (KILO, {}, "kilo-4.145"),
    (write_roo(role="You are a poet."), {"User-Agent": "Kilo-Code/4.145.0"}, "kilo-4.145"),
    (write_roo(role="You are a poet."), {"X-KiloCode-Version": "4.145.0"}, "kilo-4.145"),
    (write_roo(role="You are a poet."), {"X-Title": "Kilo Code"}, "kilo-4.145"),
    (write_cline(), {}, "cline-legacy"),
    (write_cline(), {"User-Agent": "Cline/3.82.0"}, "cline-legacy"),
    (write_compact(), {"User-Agent": "OpenAI/JS 6.21.0"}, "cline-legacy"),
    (GLM, {}, "cline-legacy"),
    (NATIVE, {"User-Agent": "RooCode/3.40.0"}, ""),
    ("You are a helpful assistant. Answer in XML.", {}, ""),
    ("You are Roo, an engineer.", {"User-Agent": "RooCode/3.29.1"}, ""),
    ("", {"X-Title": "Cline"}, ""),
    # a marker counts only with the section of its own layout, and a tool that the client has
    ("You write docs about tool XML blocks.\n\n# Tools\n\n## grep\nDescription: Looks.\n", {}, ""),
    ("You write docs about tool XML blocks.\n\n# Tools\n\n## read_file\nDescription: Reads.\n", {}, ""),
    ("Never write <actual_tool_name>.\n\n# Tools\n\n## grep\nDescription: Looks.\n", {}, ""),
    # quoted
    (f"You summarise.\n\n<transcript>\n{write_roo()}\n</transcript>\n\nBe short.", {}, ""),
    (f"You summarise.\n\n```\n{CLOSED}\n```\n", {}, ""),
    # what the user added
    (write_roo(LATER) + "Never say: You are Kilo Code, or ## insert_content.", {}, "roo-3.36"),
    (write_roo() + "Use the provider-native tool-calling mechanism", {}, "roo-3.29"),
    (f"You are Roo, an engineer.\n\n====\n\nUSER'S CUSTOM INSTRUCTIONS\n\n{write_roo()}", {}, ""),
    (write_roo().replace("\n", "\r\n"), {}, "roo-3.29"),
]


def ask(prompt: str, role: str = "system", tools: tuple[Tool, ...] = ()) -> Conversation:
    messages = [Message(role, (Text(prompt),)), Message("user", (Text("<task>\nGo.\n</task>"),))]  # type: ignore[arg-type]
    return Conversation("m", tuple(messages), tools)


@in_one_test("number", range(len(CASES)))
def test_profile(number: int) -> None:
    prompt, headers, profile = CASES[number]
    found = detect_client(ask(prompt), headers)
    assert found == (DetectedClient(profile, (0, 0)) if profile else None)


def test_a_client_that_offers_tools_is_native() -> None:
    assert detect_client(ask(write_roo(), tools=(Tool("read_file"),)), {"User-Agent": "RooCode/3.29.1"}) is None
    assert detect_client(ask(write_roo(), tools=(Tool("read_file"),)), {}, "roo-3.29") is None


def test_the_prompt_may_be_in_a_user_message() -> None:
    assert detect_client(ask(write_cline(CLINE), "user")) == DetectedClient("cline-legacy", (0, 0))
    later = Conversation("m", (Message("user", (Text("Hi"),)), *ask(write_cline(), "user").messages))
    assert detect_client(later) is None


def test_a_user_may_quote_a_prompt() -> None:
    quote = f"Explain this prompt:\n\n{write_roo()}"
    assert detect_client(ask(quote, "user")) is None
    parts = (Text("Explain this prompt:"), Text(write_roo()))
    assert detect_client(Conversation("m", (Message("user", parts),))) is None
    poet = write_roo(role="Act as a poet.")
    assert detect_client(ask(poet, "user"), {"User-Agent": "RooCode/3.29.1"}) == DetectedClient("roo-3.29", (0, 0))


def test_the_prompt_may_be_a_later_part() -> None:
    parts = (Text("Knowledge: none."), Text(write_roo()))
    conversation = Conversation("m", (Message("system", (Text("Hi"),)), Message("system", parts)))
    assert detect_client(conversation) == DetectedClient("roo-3.29", (1, 1))


def test_sentences_about_calls_are_on_one_line() -> None:
    # they are looked for before line ends are made alike
    markers = [phrase for client in all_clients().values() for layout in client.layouts for phrase in layout.markers]
    assert markers and not any("\n" in phrase or "\r" in phrase for phrase in markers)
    assert detect_client(ask(write_roo().replace("\n", "\r\n"))) == DetectedClient("roo-3.29", (0, 0))


def test_the_setting_decides() -> None:
    assert detect_client(ask(write_roo()), {}, "off") is None
    assert detect_client(ask(write_roo()), {}, "kilo-4.145") == DetectedClient("kilo-4.145", (0, 0))
    assert detect_client(ask("A prompt of my own."), {}, "roo-3.36") == DetectedClient("roo-3.36")


def test_headers_of_other_programs() -> None:
    assert parse_client_headers({"User-Agent": "python-requests/2.0"}) == ("", None)
    assert parse_client_headers({"user-agent": "RooCode/3.36.16 (linux)"}) == ("roo", (3, 36, 16))


def test_a_version_may_have_any_length() -> None:
    assert parse_client_headers({"User-Agent": f"RooCode/{'9' * 5000}.1"}) == ("", None)
    assert detect_client(ask(write_roo(LATER)), {"User-Agent": f"RooCode/{'9' * 5000}.1"}) == DetectedClient(
        "roo-3.36", (0, 0)
    )
