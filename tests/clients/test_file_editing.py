"""Editing of configuration files: settings are merged, and everything else stays."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.rows import in_one_test

from toolglot.clients.agents import AGENTS, Connection, find_agent
from toolglot.clients.file_editing import merge_text, merge_values, parse_text
from toolglot.clients.json_editing import merge_json, parse_json

HERE = Connection(address="http://127.0.0.1:8484", model="qwen3-coder:30b")
ELSEWHERE = Connection(address="https://gateway.example/glot", model='a "model"', key="secret-key")
FILES = [pytest.param(file, id=f"{agent.name}-{file.names[0]}") for agent in AGENTS for file in agent.files]

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)
CHANGES = st.dictionaries(
    st.text(max_size=4), st.text(max_size=5) | st.dictionaries(st.text(max_size=4), st.text(max_size=5))
)


@given(OBJECTS, CHANGES, st.sampled_from([None, 1, 2, "\t"]))
def test_json_of_any_layout_is_merged(
    before: dict[str, Any], changes: dict[str, Any], indent: int | str | None
) -> None:
    text = json.dumps(before, indent=indent)
    edited = merge_json(text, changes)
    assert json.loads(edited) == merge_values(before, changes)
    assert merge_json(edited, changes) == edited


COMMENTED = """\
// settings
{
  "theme": "dark", // mine
  /* "model": "old", */
  "env": {
    "A": "1" // the first
    // the end
  },
  "url": "http://a//b",
}
"""


def test_comments_stay_where_they_are() -> None:
    changes = {"theme": "light", "env": {"B": "2"}, "model": "m"}
    assert merge_json(COMMENTED, changes) == COMMENTED.replace("dark", "light").replace(
        '"1" // the first\n    // the end', '"1", // the first\n    // the end\n    "B": "2"'
    ).replace('"http://a//b",\n', '"http://a//b",\n  "model": "m"\n')


@pytest.mark.parametrize("text", ["", "  \n", "// nothing yet\n", "{}", "{ }", "{\n}\n", "\ufeff{}"])
def test_empty_files_get_the_settings(text: str) -> None:
    assert parse_json(merge_text(text, {"a": {"b": 1}}, "json").removeprefix("\ufeff")) == {"a": {"b": 1}}


@in_one_test(
    "text",
    ["[1]", "{", '{"a" 1}', '{"a": 1 "b": 2}', "{'a': 1}", "{} x", '{"a": nope}', "[" * 5000, '{"a":' * 5000, "1"],
)
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        merge_text(text, {"a": {"b": 1}}, "json")


CODEX = """\
# my settings
model = "gpt-5" # the usual one
approval_policy = "never"

[projects."/tmp/x"]  # trusted
trust_level = "trusted"

[model_providers.other]
name = "other"
"""


def test_toml_keeps_comments_and_other_tables() -> None:
    codex = find_agent("codex")
    assert codex is not None
    edited = codex.files[0].merge(CODEX, HERE)
    assert edited == CODEX.replace('"gpt-5"', '"qwen3-coder:30b"').replace(
        '"never"\n', '"never"\nmodel_provider = "toolglot"\n'
    ) + (
        '\n[model_providers.toolglot]\nname = "toolglot"\nbase_url = "http://127.0.0.1:8484/v1"\nwire_api = "responses"\n'
    )
    again = codex.files[0].merge(edited, ELSEWHERE)
    provider = tomllib.loads(again)["model_providers"]["toolglot"]
    assert provider["env_key"] == "TOOLGLOT_KEY" and provider["base_url"] == "https://gateway.example/glot/v1"
    assert "secret-key" not in again and "# trusted" in again


@pytest.mark.parametrize(
    "text",
    ["model_providers = {toolglot = {name = 'x'}}\n", 'model = """\nlong\n"""\n', "model.name = 1\n", "= 1\n"],
)
def test_toml_of_unusual_layout_is_refused(text: str) -> None:
    codex = find_agent("codex")
    assert codex is not None
    with pytest.raises(ValueError):
        codex.files[0].merge(text, HERE)


CONTINUE = """\
name: Mine
version: 0.0.1
schema: v1
models:
  # the big one
  - name: other
    provider: openai
rules: []  # none
"""


def test_yaml_lists_get_the_item_first() -> None:
    agent = find_agent("continue")
    assert agent is not None
    once = agent.files[0].merge(CONTINUE, HERE)
    twice = agent.files[0].merge(once, ELSEWHERE)
    for text, connection in ((once, HERE), (twice, ELSEWHERE)):
        found = yaml.safe_load(text)
        assert found["name"] == "Mine"
        assert [model["name"] for model in found["models"]] == ["toolglot", "other"]
        assert found["models"][0]["apiBase"] == f"{connection.address}/v1"
        assert "# the big one" in text and "# none" in text


def test_variables_are_replaced_or_added() -> None:
    text = "# keys\nexport GEMINI_API_KEY='old' # mine\nOTHER=1"
    edited = merge_text(text, {"GEMINI_API_KEY": "new", "GEMINI_MODEL": "m"}, "env")
    assert edited == "# keys\nGEMINI_API_KEY=new # mine\nOTHER=1\nGEMINI_MODEL=m\n"


@in_one_test("file", FILES)
@in_one_test("connection", [HERE, ELSEWHERE], ids=["here", "elsewhere"])
def test_every_file_is_complete_and_stable(file: Any, connection: Connection) -> None:
    text = file.merge("", connection)
    assert file.merge(text, connection) == text
    assert "{" not in json.dumps(list(leaves(parse_text(text, file.format)))), "a placeholder is left"
    windows = file.merge("", HERE).replace("\n", "\r\n")
    changed = file.merge(windows, connection)
    assert parse_text(changed, file.format) is not None and "\n" not in changed.replace("\r\n", "")


def leaves(value: Any) -> Any:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def test_files_are_found_where_variables_say(tmp_path: Path) -> None:
    codex, opencode = find_agent("codex"), find_agent("opencode")
    assert codex is not None and opencode is not None
    home = tmp_path / "home"
    assert codex.files[0].locate({}, home) == home / ".codex/config.toml"
    assert codex.files[0].locate({"CODEX_HOME": str(tmp_path)}, home) == tmp_path / "config.toml"
    (tmp_path / "opencode").mkdir()
    (tmp_path / "opencode/opencode.jsonc").touch()
    found = opencode.files[0].locate({"XDG_CONFIG_HOME": str(tmp_path)}, home)
    assert found == tmp_path / "opencode/opencode.jsonc"


def test_every_record_can_be_used() -> None:
    from toolglot.wires import client_wires

    assert len({agent.name for agent in AGENTS}) == len(AGENTS)
    for agent in AGENTS:
        assert agent.wire in client_wires()
        assert bool(agent.files) != bool(agent.snippet)
        assert not any(name in HERE.fill(agent.snippet) for name in ("{address}", "{model}", "{key}"))
