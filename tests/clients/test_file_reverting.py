"""Taking settings out of configuration files that others have changed since: only what was set goes."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from toolglot.clients.agents import AGENTS, Connection
from toolglot.clients.file_editing import find_changes, merge_text, merge_values, parse_text, revert_text
from toolglot.clients.setting_paths import show_path
from toolglot.clients.toml_editing import write_toml

HERE = Connection(address="http://127.0.0.1:8484", model="qwen2.5-coder:30b", key="k")
FILES = [pytest.param(file, id=f"{agent.name}-{file.names[0]}") for agent in AGENTS for file in agent.files]
KEYS = st.text("abc.-\"é\\ '", min_size=1, max_size=4)
VALUES = st.recursive(
    st.booleans() | st.integers(-99, 99) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
CHANGES = st.dictionaries(KEYS, st.text(max_size=5) | st.dictionaries(KEYS, st.text(max_size=5), max_size=3))
OTHERS = st.dictionaries(KEYS.map(lambda key: f"other {key}"), VALUES, max_size=3)


def revert(text: str, before: Any, after: Any, kind: str) -> tuple[str, list[str]]:
    reverted = revert_text(text, find_changes(before, after), kind)
    return reverted.text, [show_path(path) for path in reverted.kept]


@given(OBJECTS, CHANGES, OTHERS, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_that_was_rewritten_keeps_what_others_added(
    before: dict[str, Any], changes: dict[str, Any], others: dict[str, Any], indent: int | str | None, first: bool
) -> None:
    after = merge_values(before, changes)
    now = {**others, **after} if first else {**after, **others}
    text, kept = revert(json.dumps(now, indent=indent), before, after, "json")
    assert json.loads(text) == {**before, **others} and kept == []


@given(OBJECTS, CHANGES, OTHERS, st.sampled_from([True, False, None]))
def test_yaml_of_any_style_keeps_what_others_added(
    before: dict[str, Any], changes: dict[str, Any], others: dict[str, Any], flow: bool | None
) -> None:
    after = merge_values(before, changes)
    written = yaml.safe_dump({**after, **others}, default_flow_style=flow, allow_unicode=True, sort_keys=False)
    assume(yaml.safe_load(written) == {**after, **others})  # it does not write all line breaks so that it reads them
    text, kept = revert(written, before, after, "yaml")
    assert (yaml.safe_load(text) or {}) == {**before, **others} and kept == []


@given(OBJECTS, CHANGES, OTHERS, st.sampled_from(["", "# note", "x.y = [\n1,\n2]"]))
def test_toml_keeps_what_others_added(
    before: dict[str, Any], changes: dict[str, Any], others: dict[str, Any], between: str
) -> None:
    after = merge_values(before, changes)
    lines = [f"{write_toml(key)} = {write_toml(value)}" for key, value in {**after, **others}.items()]
    text, kept = revert(f"\n{between}\n".join(lines[:2]) + "\n" + "\n".join(lines[2:]), before, after, "toml")
    found = tomllib.loads(text)
    found.pop("x", None)
    assert found == {**before, **others} and kept == []


@pytest.mark.parametrize(
    "text", ["base: &b {m: x}\nm: x\nother: *b\n", "m: &b x\nother: *b\n", "base: &b\n  m: x\n<<: *b\n"]
)
def test_yaml_with_anchors_is_edited_or_refused(text: str) -> None:
    try:
        left, _ = revert(text, {}, {"m": "x"}, "yaml")
    except ValueError as error:
        assert "unusual" in str(error) or "not YAML" in str(error)
    else:
        assert yaml.safe_load(left) == {key: value for key, value in yaml.safe_load(text).items() if key != "m"}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_file_that_setup_made_becomes_empty(file: Any, ending: str) -> None:
    text = file.merge("", HERE).replace("\n", ending)
    left, kept = revert(text, {}, parse_text(text, file.format), file.format)
    assert left.strip() in ("", "{}") and kept == []


SAMPLES: dict[str, tuple[str, dict[str, Any], tuple[str, str]]] = {
    "json": (
        '// mine\n{\n  "theme": "dark", // yes\n  "env": {"A": "1"},\n  "model": "old"\n}\n',
        {"env": {"B": "2", "C": "3"}, "model": "new", "provider": {"x": {"y": 1}}},
        ('"dark"', '"light"'),
    ),
    "toml": (
        '# mine\nmodel = "old" # usual\n\n[tools]\nview = true\n\n[providers.other] # theirs\nname = "o"\n',
        {"model": "new", "provider": "t", "providers": {"t": {"name": "t", "url": "u"}}},
        ("view = true", "view = false\nmore = [\n  1, # one\n]"),
    ),
    "yaml": (
        "# mine\nmodel: old # usual\nextensions:\n  dev:\n    on: true\nmodels:\n  # the big one\n  - name: big\n    p: 1\n",
        {"model": "new", "host": "h", "models": [{"name": "t", "roles": ["chat"]}]},
        ("on: true", "on: false"),
    ),
    "env": ("# mine\nKEY=old # usual\nOTHER=1\n", {"KEY": "new", "MODEL": "m"}, ("OTHER=1", "OTHER=2\nMORE=3")),
}
"""By format: a file, what is set in it, and what another program replaces in it afterwards."""


@pytest.mark.parametrize("kind", SAMPLES)
def test_comments_order_and_layout_stay(kind: str) -> None:
    before, changes, (old, new) = SAMPLES[kind]
    merged = merge_text(before, changes, kind)
    values = parse_text(before, kind), parse_text(merged, kind)
    assert revert(merged, *values, kind) == (before, [])
    assert revert(merged.replace(old, new), *values, kind) == (before.replace(old, new), [])


@pytest.mark.parametrize("kind", SAMPLES)
def test_what_a_person_changed_stays_and_is_named(kind: str) -> None:
    before, changes, _ = SAMPLES[kind]
    merged = merge_text(before, changes, kind)
    key = "KEY" if kind == "env" else "model"
    now = merge_text(merged, {key: "mine"}, kind)
    text, kept = revert(now, parse_text(before, kind), parse_text(merged, kind), kind)
    assert kept == [key] and parse_text(text, kind) == {**parse_text(before, kind), key: "mine"}


def test_what_a_person_removed_or_restored_stays_so() -> None:
    before, after = {"a": 1, "b": 2, "c": 3}, {"a": "x", "b": "x", "c": "x", "d": {"e": "x"}}
    assert revert('{"a": 1, "c": "x"}', before, after, "json") == ('{"a": 1, "c": 3}', ["b"])


def test_objects_of_others_inside_of_ours_stay() -> None:
    after = {"provider": {"toolglot": {"url": "u"}}}
    text, _ = revert('{"provider": {"toolglot": {"url": "u"}, "x": {"url": "v"}}}', {}, after, "json")
    assert text == '{"provider": {"x": {"url": "v"}}}'
    text, _ = revert('{"provider": {"toolglot": {"url": "u", "added": 1}}}', {}, after, "json")
    assert text == '{"provider": {"toolglot": {"added": 1}}}'


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ('{"a": 1, "m": "x"}', '{"a": 1}'),
        ('{"m": "x", "a": 1}', '{"a": 1}'),
        ('{ "a": 1, "m": "x" }', '{ "a": 1 }'),
        ('{\n  "a": 1,\n  "m": "x",\n}', '{\n  "a": 1,\n}'),
        ('{\n  "a": 1, // one\n  "m": "x" // two\n}', '{\n  "a": 1 // one\n  // two\n}'),
        ('{\n  // all\n  "m": "x"\n}', "{\n  // all\n}"),
        ('{"m" /* a */ : /* b */ "x" /* c */ , "a": 1}', '{ /* c */  "a": 1}'),
        ('{\n\t"m": "x"\n}\n', "{}\n"),
    ],
)
def test_json_members_go_with_their_commas(now: str, expected: str) -> None:
    assert revert(now, {}, {"m": "x"}, "json") == (expected, [])


PROVIDER = {"model": "m", "p": {"t": {"url": "u", "wire": "w"}}}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ('p.t.url = "u"\np.t.wire = "w"\nmodel = "m"\nx = 1\n', "x = 1\n"),
        ('"model" = \'m\'\n[p."t"]\nurl = "u"\n"wire" = """\nw"""\n[x]\n', "[x]\n"),
        ('model = "m"\np = { t = { url = "u", wire = "w" }, o = { url = "v" } }\n', 'p = { o = { url = "v" } }\n'),
        (
            'x = """\nmodel = "m"\n[p.t]\n"""\nmodel = "m"\n[p.t]\nurl="u"\nwire="w"',
            'x = """\nmodel = "m"\n[p.t]\n"""\n',
        ),
        (
            'model = "m"\n[p]\n[p.t]\n# mine\nurl = "u" # x\nwire = "w"\n[[x]]\nmodel = "m"\n',
            '# mine\n[[x]]\nmodel = "m"\n',
        ),
        ('model = "m"\n\n[p.t]\nurl = "u"\nwire = "w"\nmine = 1\n', "\n[p.t]\nmine = 1\n"),
    ],
    ids=["dotted", "quoted", "inline", "multiline", "commented", "extended"],
)
def test_toml_of_any_layout(now: str, expected: str) -> None:
    assert tomllib.loads(now)["model"] == "m"
    assert revert(now, {}, PROVIDER, "toml") == (expected, [])


def test_toml_values_are_restored_in_inline_tables() -> None:
    before, after = {"p": {"t": {"url": "o'\"", "n": [1, "2"]}}}, {"p": {"t": {"url": "u", "n": "x"}}}
    text, _ = revert('p = {t = {url = "u", n = "x"}} # mine', before, after, "toml")
    assert text == 'p = { t = { url = "o\'\\"", n = [1, "2"] } } # mine'


ITEM = {"models": [{"name": "t", "roles": ["chat"]}]}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("models: []\n", "models:\n  # mine\n  - name: t\n    roles: [chat]\n# end\n", "models: []\n  # mine\n# end\n"),
        ("", "models:\n- name: t\n  roles:\n  - chat\nx: 1\n", "x: 1\n"),
        (
            "models: [{name: o}]\n",
            "models: [{name: o}, {name: t, roles: [chat]}] # x\n",
            'models: [{"name": "o"}] # x\n',
        ),
        (
            "models:\n- name: t\n  p: 1\n",
            "models:\n- roles: [chat]\n  name: 't'\n",
            'models:\n- {"name": "t", "p": 1}\n',
        ),
    ],
    ids=["empty", "made", "flow", "replaced"],
)
def test_yaml_lists(before: str, now: str, expected: str) -> None:
    former = parse_text(before, "yaml")
    assert revert(now, former, merge_values(former, ITEM), "yaml") == (expected, [])


@pytest.mark.parametrize(("text", "kind"), [('{"m": ', "json"), ("m = [", "toml"), ("m: [", "yaml")])
def test_damaged_files_are_refused(text: str, kind: str) -> None:
    with pytest.raises(ValueError):
        revert(text, {}, {"m": "x"}, kind)


def test_repeated_keys_are_refused_and_not_half_removed() -> None:
    with pytest.raises(ValueError, match="unusual"):
        revert('{"m": "y", "m": "x"}', {}, {"m": "x"}, "json")
