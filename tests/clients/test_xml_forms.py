"""Every documented form of every tool of every XML client runs as it is written.

The general reader decides whether the text is a call; the client's parser decides what it means, and the text passes byte for byte.
"""

from __future__ import annotations

import json
from random import Random

import pytest
from support.rows import in_one_test
from support.xmlcases import deliver
from support.xmlforms import Form, forms_of

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.profile import XmlCallBlock, XmlTextBlock
from toolglot.clients.xml.text_escaping import unescape_text
from toolglot.core.lenient_json import dump

CLIENTS = all_clients()
ROWS = [(client, form) for client in CLIENTS.values() for form in forms_of(client)]


def name_row(row: tuple[XmlClient, Form]) -> str:
    return f"{row[0].name} {row[1].tool}"


@in_one_test("row", ROWS, ids=name_row)
def test_every_documented_form_runs_as_written(row: tuple[XmlClient, Form]) -> None:
    client, form = row
    random = Random(form.text)
    for before in ("", "I go on.\n\n", "Now:\n"):
        text = before + form.text
        cuts = sorted(random.choices(range(len(text) + 1), k=6))
        cut = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        for pieces in ([text], cut) if before else ([text], list(text)):
            assert "".join(deliver(client, pieces)) == text


@in_one_test("row", ROWS, ids=name_row)
def test_the_client_reads_the_values_of_the_form(row: tuple[XmlClient, Form]) -> None:
    client, form = row
    (call,) = client.read(form.text, "qwen3")
    assert isinstance(call, XmlCallBlock)
    assert (call.name, call.partial, call.complaint) == (form.tool, False, "")
    given = {name: value for name, value in form.given.items() if name in client.grammar.parameters}
    read = json.loads(dump(dict(call.params)))
    assert not form.given or read == given


@in_one_test("client", CLIENTS.values(), ids=lambda client: client.name)
def test_every_tool_has_a_form(client: XmlClient) -> None:
    only_parsed = {"search_replace"} | ({"edit_file"} if client.name == "roo-3.36" else set())
    assert {form.tool for form in forms_of(client)} == set(client.tools) - only_parsed


@in_one_test("row", ROWS, ids=name_row)
def test_no_form_is_run_before_it_is_complete(row: tuple[XmlClient, Form]) -> None:
    """These clients run what is open when the stream ends, so no part of a call leaves."""
    client, form = row
    random = Random(form.text)
    ends = {*random.choices(range(len(form.text)), k=5), len(form.text) - 1}
    for end in ends:
        events = "".join(deliver(client, ["Now:\n", form.text[:end]], finish="length"))
        assert all(isinstance(block, XmlTextBlock) for block in client.read(events, "qwen3")), events
        events = "".join(deliver(client, ["Now:\n", form.text[:end]]))
        calls = [block for block in client.read(events, "qwen3") if isinstance(block, XmlCallBlock)]
        assert not any(call.partial for call in calls), events
        # a model that stops before the last tag has written all that matters
        assert not calls or end >= len(form.text[: form.text.rindex("</")].rstrip()), events


@in_one_test("row", ROWS, ids=name_row)
def test_a_form_that_is_shown_is_no_call(row: tuple[XmlClient, Form]) -> None:
    client, form = row
    shown = f"Write this:\n\n```xml\n{form.text}\n```\n\nThat is the form."
    events = "".join(deliver(client, [shown]))
    assert all(isinstance(block, XmlTextBlock) for block in client.read(events, "qwen3")), events


LACKING = [row for row in ROWS if any(one.required for one in row[0].tools[row[1].tool].parameters)]


@in_one_test("row", LACKING, ids=name_row)
def test_a_call_that_lacks_everything_is_for_the_client_to_complain_of(row: tuple[XmlClient, Form]) -> None:
    """Its message names what is missing. Followed by more text the same is a mention of the tool."""
    client, form = row
    text = f"<{form.tool}>\n<note>none</note>\n</{form.tool}>"
    for before in ("", "I go on.\n\n", "Now "):
        for pieces in ([before + text], list(before + text)):
            assert "".join(deliver(client, pieces)) == before + text
    events = "".join(deliver(client, [f"The form {text} is not enough."]))
    assert all(isinstance(block, XmlTextBlock) for block in client.read(events, "qwen3")), events


@in_one_test("client", CLIENTS.values(), ids=lambda client: client.name)
def test_an_empty_value_is_for_the_client_to_complain_of(client: XmlClient) -> None:
    """An incomplete call is not rewritten, and no text around it is lost."""
    command = (
        "<execute_command>\n<command>{}</command>\n<requires_approval>false</requires_approval>\n</execute_command>"
    )
    empty = command.format(" ")
    assert "".join(deliver(client, list(empty))) == empty
    assert "".join(deliver(client, [f"{empty}\n{command.format('ls')}"])) == empty
    events = "".join(deliver(client, [f"Say {empty} and wait."]))
    assert unescape_text(client, events) == f"Say {empty} and wait." and events != f"Say {empty} and wait."


@pytest.mark.parametrize("blanks", ["\n", "\n\n  ", "\r\n"])
def test_blanks_behind_a_call_are_delivered(blanks: str) -> None:
    text = "I look.\n\n<execute_command>\n<command>ls</command>\n</execute_command>" + blanks
    client = all_clients()["roo-3.36"]
    assert "".join(deliver(client, [text])) == "".join(deliver(client, list(text))) == text
