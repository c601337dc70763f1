"""The client's own parser decides: what it reads as a call is delivered byte for byte, with the text around it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from support.rows import in_one_test
from support.xmlcases import deliver, deliver_answer

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.profile import XmlCallBlock
from toolglot.clients.xml.text_escaping import unescape_text
from toolglot.core.events import ReasoningDelta

CLIENTS = all_clients()
ROO, CLINE = CLIENTS["roo-3.36"], CLIENTS["cline-legacy"]
EVERY = pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)

READ = "<read_file>\n<path>src/a.py</path>\n</read_file>"
LIST = "<list_files>\n<path>src</path>\n</list_files>"
LACKS = "<use_mcp_tool>\n<server_name>db</server_name>\n</use_mcp_tool>"
EMPTY = "<search_files>\n<path></path>\n</search_files>"


def cuts(text: str) -> Iterator[list[str]]:
    """The text whole, by characters, and cut anywhere."""
    yield [text]
    yield list(text)
    random = Random(text)
    for _ in range(4):
        ends = sorted(random.choices(range(len(text) + 1), k=5))
        yield [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def render_for(client: XmlClient, text: str) -> str:
    """The text for the client, which is the same however the answer is cut."""
    (events,) = {"".join(deliver(client, pieces)) for pieces in cuts(text)}
    return events


def calls_in(client: XmlClient, text: str) -> list[str]:
    return [block.name for block in client.read(text, "qwen3") if isinstance(block, XmlCallBlock)]


THOUGHTS = (
    "<thinking>\nI need the file.\n</thinking>\n\n",
    "<thinking>I need it.</thinking>",
    'Well.\n\n<thinking>\nif a < b: `x`\n\nAnd {"a": [1]}.\n</thinking>\n\nNow:\n',
    "<thinking></thinking>\n",
    "Hm. <thinking>so</thinking> Go.\n\n",
    "I need the file.\n</thinking>\n\n",
    "<thinking>\nI never close it.\n\n",
    "\n<thinking>\r\nwindows\r\n</thinking>\r\n\r\n",
)


@EVERY
@in_one_test("thought", THOUGHTS)
def test_reasoning_that_the_client_looks_for_stays_in_the_text(client: XmlClient, thought: str) -> None:
    """These clients take the tags of <thinking> out themselves, and their prompts ask for them."""
    for behind in ("", "\n"):
        assert render_for(client, thought + READ + behind) == thought + READ + behind
    assert render_for(client, thought + "I am done.") == thought + "I am done."


@EVERY
def test_a_call_in_such_reasoning_is_not_made(client: XmlClient) -> None:
    for text in (
        f"<thinking>\nI could do\n{READ}\nbut no.\n</thinking>\n\n{LIST}",
        f"<thinking>\n{READ}\n</thinking>\n\n{LIST}",
    ):
        rendered = render_for(client, text)
        assert unescape_text(client, rendered) == text
        assert calls_in(client, rendered) == ["list_files"]
    rendered = render_for(client, f"<thinking>\nMaybe\n{READ}\n</thinking>\n\nI am done.")
    assert unescape_text(client, rendered) == f"<thinking>\nMaybe\n{READ}\n</thinking>\n\nI am done."
    assert calls_in(client, rendered) == []


def test_other_reasoning_has_its_own_channel() -> None:
    """Roo takes <think> for reasoning only at the very beginning, Cline takes the tags out."""
    text = f"<think>\nI need it.\n</think>\n\n{READ}"
    assert render_for(CLINE, text) == text
    events = deliver_answer(ROO, [text])
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "\nI need it.\n"
    assert render_for(ROO, text) == f"\n\n{READ}"


NOT_FILLED = {
    "approval": (CLINE, "<execute_command>\n<command>ls</command>\n</execute_command>"),
    "folder to list": (ROO, "<list_files>\n<recursive>true</recursive>\n</list_files>"),
    "folder to search": (ROO, "Now:\n<search_files>\n<regex>a < b</regex>\n</search_files>"),
    "nothing given": (ROO, "Here:\n<list_files></list_files>"),
}


@pytest.mark.parametrize("case", NOT_FILLED)
def test_what_the_model_left_out_is_for_the_client_to_ask_for(case: str) -> None:
    client, text = NOT_FILLED[case]
    for behind in ("", "\n", "\n\n  "):
        assert render_for(client, text + behind) == text + behind


def test_other_spellings_are_repaired_and_nothing_is_added() -> None:
    """The client reads no parameter in a tag with attributes, and misses it."""
    rendered = render_for(ROO, '<list_files>\n<path type="string">src</path>\n</list_files>')
    assert rendered == LIST


@EVERY
@in_one_test("behind", ["\n\nI wait for it.", " and a < b", "\n```\n", "\r\n\r\nDone.\r\n", "\n</thinking>"])
def test_text_behind_a_call_is_delivered(client: XmlClient, behind: str) -> None:
    text = f"I look.\n\n{READ}{behind}"
    assert render_for(client, text) == text


@EVERY
def test_a_second_call_and_what_follows_it_are_dropped(client: XmlClient) -> None:
    assert render_for(client, f"{READ}\n\nThen:\n\n{LIST}\nDone.") == f"{READ}\n\nThen:"
    assert render_for(client, f"{READ}\n{LACKS}\nDone.") == READ
    rendered = render_for(client, f"{READ}\nThe tag <list_files> lists.")
    assert unescape_text(client, rendered) == f"{READ}\nThe tag <list_files> lists."
    assert calls_in(client, rendered) == ["read_file"]


def test_no_text_follows_that_is_more_than_the_client_reads() -> None:
    """Roo throws for a message of a megabyte, and the call would be lost."""
    assert "".join(deliver(ROO, [READ, "\n", "x" * 1_100_000])) == READ
    assert len("".join(deliver(CLINE, [READ, "\n", "x" * 1_100_000]))) > 1_100_000


@EVERY
def test_a_call_on_lines_of_its_own_that_lacks_something_is_a_call(client: XmlClient) -> None:
    for text in (f"{LACKS}\n\nI wait.", f"Now:\n{LACKS}\nI wait.\n", f"Now:\n{LACKS}\n{READ}"):
        rendered = render_for(client, text)
        assert text.startswith(rendered) and calls_in(client, rendered) == ["use_mcp_tool"]
        assert rendered == text or text.endswith(READ)


@EVERY
@in_one_test("text", [f"Say {LACKS} and wait.", f"{EMPTY}\n\nIt needs a path.\n", f"So {LACKS}\n\ndoes it. "])
def test_a_mention_keeps_the_blanks_around_it(client: XmlClient, text: str) -> None:
    rendered = render_for(client, text)
    assert unescape_text(client, rendered) == text
    assert calls_in(client, rendered) == []


def test_a_call_that_is_read_beyond_its_end_ends_where_the_client_ends_it() -> None:
    """The general reader takes what follows a repeated parameter for a part of the call."""
    asked = "<follow_up>\n<suggest>a & b</suggest>\n</follow_up>\n"
    call = f"<ask_followup_question>\n<question> </question>\n{asked}{asked}</ask_followup_question>"
    rendered = render_for(ROO, f"Now:\n{call}\n\n{LIST}\n")
    assert unescape_text(ROO, rendered) == f"Now:\n{call}\n\n{LIST}\n"
    assert calls_in(ROO, rendered) == ["ask_followup_question"]


def test_a_long_call_that_lacks_something_is_a_call() -> None:
    text = f"<edit_file>\n<target_file>a</target_file>\n<code_edit>\n{'x = 1' * 900}\n</code_edit>\n</edit_file>\n"
    assert render_for(ROO, text) == text


@EVERY
@in_one_test("call", [READ, LACKS, LIST.replace("\n", "\r\n")])
def test_a_fence_around_a_call_stays(client: XmlClient, call: str) -> None:
    for text in (f"```xml\n{call}\n```", f"Now.\n\n```\n{call}\n```\n", f"For example:\n\n```xml\n{call}\n```\n"):
        rendered = render_for(client, text)
        assert unescape_text(client, rendered) == text
        assert (rendered == text) is not text.startswith("For")
