"""Settings: where they come from, which source wins, what is refused, and the error messages."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.rows import in_one_test

import toolglot
from toolglot.config import (
    DEFAULT_DIALECT,
    KeyHash,
    ModelSettings,
    Secret,
    Settings,
    StoreUrl,
    Upstream,
    admit,
    check_binding,
    find_file,
    load,
    make_key,
    make_settings,
    owner_of,
)
from toolglot.config.description import describe_settings
from toolglot.config.rollout import Plan
from toolglot.config.settings import FALLBACK, FIELDS, SECTIONS, SETTINGS, TABLES, Setting
from toolglot.core.call_patterns import PATTERNS
from toolglot.core.errors import UnknownModelError, UsageError
from toolglot.dialects.records import all_dialects

CONFIGURATION = Path(__file__).resolve().parents[2] / "docs" / "CONFIGURATION.md"
KEY = "sk-test-0123456789abcdef"


def toml(folder: Path, text: str) -> Path:
    path = folder / "toolglot.toml"
    path.write_text(text, encoding="utf-8")
    return path


# Sources and precedence


def test_no_options_give_the_defaults() -> None:
    settings = load({}, {})
    assert settings == Settings()
    assert set(settings.sources.values()) == {"default"}
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8484)
    assert settings.limits.body_bytes == 32 * 1024 * 1024


def test_command_line_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    path = toml(tmp_path, "[server]\nport = 1\nworkers = 2\nhost = '::1'")
    environ = {"TOOLGLOT_PORT": "3", "TOOLGLOT_WORKERS": "4"}
    settings = load({"port": 5}, environ, path)
    assert (settings.server.port, settings.server.workers, settings.server.host) == (5, 4, "::1")
    keys = ("server.port", "server.workers", "server.host", "server.drain_seconds")
    assert [settings.sources[key] for key in keys] == ["--port", "TOOLGLOT_WORKERS", str(path), "default"]


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    assert load({}, {"TOOLGLOT_PORT": "", "TOOL_CALLING_ENABLED": " "}) == Settings()


@pytest.mark.parametrize("prefix", ["", "TOOLGLOT_"])
def test_the_variables_of_the_plan_work_with_and_without_prefix(prefix: str) -> None:
    """Seed 002, phase 6: feature flags."""
    environ = {
        f"{prefix}TOOL_CALLING_ENABLED": "false",
        f"{prefix}TOOL_CALLING_AUTO_DETECT": "false",
        f"{prefix}TOOL_CALLING_MAX_TOOLS": "20",
    }
    calling = load({}, environ).tool_calling
    assert (calling.enabled, calling.auto_detect, calling.max_tools) == (False, False, 20)


def test_our_own_prefix_wins() -> None:
    environ = {"TOOL_CALLING_MAX_TOOLS": "1", "TOOLGLOT_TOOL_CALLING_MAX_TOOLS": "2"}
    assert load({}, environ).tool_calling.max_tools == 2


SAMPLES: dict[str, tuple[str, Any]] = {
    "server.host": ("::1", "::1"),
    "server.port": ("0", 0),
    "server.keys": (f"{KEY}, other", (KeyHash.of(KEY), KeyHash.of("other"))),
    "server.require_key": ("true", True),
    "server.workers": ("2", 2),
    "server.heartbeat_seconds": ("0.5", 0.5),
    "server.drain_seconds": ("1", 1.0),
    "server.log_bodies": ("yes", True),
    "server.log_level": ("WARNING", "warning"),
    "server.traces": ("otlp", "otlp"),
    "server.default_model": ("coder", "coder"),
    "server.start_checks": ("false", False),
    "server.unknown_model": ("only_model", "only_model"),
    "server.unknown_ids": ("pass", "pass"),
    "server.state_dir": ("none", "none"),
    "tool_calling.enabled": ("off", False),
    "tool_calling.auto_detect": ("0", False),
    "tool_calling.max_tools": ("20", 20),
    "tool_calling.max_parameter_bytes": ("2 KiB", 2048),
    "tool_calling.supported_tools": ("read, write,", ("read", "write")),
    "tool_calling.mode": ("TEXT", "text"),
    "tool_calling.dialect": ("Qwen/Qwen3-Coder-30B", "qwen3_coder"),
    "tool_calling.profiles": ("my.toml", "my.toml"),
    "tool_calling.cool_down_seconds": ("60", 60.0),
    "reading.unknown_tools": ("reject", "reject"),
    "reading.min_confidence": ("0.5", 0.5),
    "reading.parallel_calls": ("true", True),
    "reading.leaked_calls": ("feedback", "feedback"),
    "reading.shell": ("ls,cat", ("ls", "cat")),
    "reading.shell_syntax": ("pipes, chains", ("pipes", "chains")),
    "reading.shell_cwd": ("/srv", "/srv"),
    "patterns.json_code_blocks": ("off", False),
    "patterns.json_code_blocks_confidence": ("0.97", 0.97),
    "patterns.shell_commands": ("off", False),
    "patterns.shell_commands_confidence": ("1", 1.0),
    "patterns.require_cwd": ("yes", True),
    "patterns.bare_json": ("no", False),
    "patterns.bare_json_confidence": ("0", 0.0),
    "patterns.python_calls": ("0", False),
    "patterns.python_calls_confidence": ("0.5", 0.5),
    "patterns.natural_language": ("off", False),
    "clients.xml": ("Roo-3.29", "roo-3.29"),
    "clients.guard": ("entities,diffs", ("entities", "diffs")),
    "prompt.stable": ("off", False),
    "prompt.unstable": ("attribution,changed_lines", ("attribution", "changed_lines")),
    "recovery.retries": ("2", 2),
    "recovery.seconds": ("30", 30.0),
    "recovery.tokens": ("5000", 5000),
    "recovery.narrated_stop": ("off", False),
    "recovery.loop_guard": ("0", 0),
    "recovery.invalid": ("TEXT", "text"),
    "recovery.fallback_model": ("big", "big"),
    "recovery.hold_calls": ("Always", "always"),
    "recovery.feedback_only": ("yes", True),
    "recovery.continue_cut": ("yes", True),
    "recovery.edit_hints": ("on", True),
    "limits.body_bytes": ("1 MiB", 1 << 20),
    "limits.header_bytes": ("100", 100),
    "limits.answer_bytes": ("1 MiB", 1 << 20),
    "limits.event_bytes": ("64 KiB", 1 << 16),
    "limits.compression_ratio": ("20", 20),
    "limits.messages": ("7", 7),
    "rollout.stage": ("shadow", Plan(dry_run=True)),
    "rollout.reading": ("canary", Plan(10)),
    "rollout.rescue": ("canary-2.5", Plan(2.5)),
    "rollout.xml": ("33", Plan(33)),
    "rollout.shell": ("off", Plan(0)),
    "rollout.editing": ("auto", None),
    "rollout.recovery": ("off", Plan(0)),
    "limits.kept_bytes": ("1 MiB", 1 << 20),
    "limits.kept_seconds": ("60", 60.0),
    "limits.open_requests": ("9", 9),
    "limits.queued_requests": ("0", 0),
    "limits.queue_seconds": ("2.5", 2.5),
    "limits.requests_per_minute": ("30", 30),
    "store.url": ("postgresql://u:p@h/db", StoreUrl("postgresql://u:p@h/db")),
    "store.bodies": ("Failures", "failures"),
    "store.max_body_bytes": ("1 KiB", 1024),
    "store.keep_records_days": ("0.5", 0.5),
    "store.keep_sessions_days": ("0", 0.0),
    "store.max_bytes": ("2 GiB", 2 << 30),
    "console.enabled": ("false", False),
    "console.read_only": ("true", True),
    "console.keys": (KEY, (KeyHash.of(KEY),)),
    "embedded.model": ("qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b"),
    "embedded.cache_dir": ("/srv/models", "/srv/models"),
    "embedded.context": ("4096", 4096),
    "embedded.threads": ("8", 8),
}


@in_one_test("one", SETTINGS, ids=lambda one: one.key)
def test_every_setting_has_a_variable(one: Setting) -> None:
    assert one.key in SAMPLES, f"add {one.key} to SAMPLES in tests/config/test_config.py: its value as text and as read"
    text, value = SAMPLES[one.key]
    for variable in one.variables:
        settings = load({}, {variable: text})
        assert getattr(getattr(settings, one.section), one.field) == value
        assert settings.sources[one.key] == variable
        assert settings.notes == ()
    assert getattr(getattr(load({one.flag: text}, {}), one.section), one.field) == value


def test_no_two_settings_share_a_name() -> None:
    flags = [one.flag for one in (*SETTINGS, *FALLBACK)]
    variables = [name for one in (*SETTINGS, *FALLBACK) for name in one.variables]
    assert len(set(flags)) == len(flags)
    assert len(set(variables)) == len(variables)


# What is refused


@in_one_test(
    ("variable", "value", "accepted"),
    [
        ("TOOLGLOT_PORT", "http", "a whole number from 0 to 65535"),
        ("TOOLGLOT_PORT", "65536", "a whole number from 0 to 65535"),
        ("TOOL_CALLING_ENABLED", "maybe", "true or false"),
        ("TOOLGLOT_MODE", "xml", "auto, native, text or off"),
        ("TOOLGLOT_DIALECT", "klingon", "a dialect or a model id ('toolglot dialects' lists them)"),
        ("TOOLGLOT_MIN_CONFIDENCE", "nan", "a number from 0 to 1"),
        ("TOOLGLOT_LIMIT_BODY_BYTES", "32 parsec", "a size: bytes, or a number with KiB, MiB or GiB"),
        ("TOOLGLOT_PARALLEL_CALLS", "2", "true, false or auto"),
        ("OPENAI_BASE_URL", "localhost:8000", "an address that begins with http:// or https://"),
        ("TOOLGLOT_BASE_URL", "http://host:port/v1", "an address that begins with http:// or https://"),
    ],
)
def test_a_bad_value_is_named_with_its_variable_and_what_is_accepted(variable: str, value: str, accepted: str) -> None:
    with pytest.raises(UsageError) as caught:
        load({}, {variable: value})
    assert caught.value.message == f"{variable} is {value!r}; it must be {accepted}"


@pytest.mark.parametrize(
    "environ",
    [
        {"TOOLGLOT_CLIENT_KEYS": "sha256:secret"},
        {"TOOLGLOT_CLIENT_KEYS": "a secret"},
        {"OPENAI_BASE_URL": "ftp://me:secret@host"},
        {"OPENAI_BASE_URL": "http://host", "OPENAI_API_KEY": "se cret"},
    ],
)
def test_errors_show_no_secret(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        load({}, environ)
    assert "***" in caught.value.message
    assert not re.search("secret|se cret", caught.value.message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[server]\nprot = 1", "[server] has an unknown key 'prot'; did you mean port?"),
        ("[sever]\nport = 1", " has an unknown key 'sever'; did you mean server?"),
        ("[limits]\nxyz = 1", "known are body_bytes, header_bytes, messages"),
        ("[[upstream]]\nbase_ulr = 'x'", "[[upstream]] number 1 has an unknown key 'base_ulr'; did you mean base_url?"),
        ("server = 1", "[server] must be a table"),
        ("[upstream]\nname = 'a'", "write [[upstream]], with two brackets"),
        ("[server]\nport = true", "server.port is True; it must be a whole number from 0 to 65535"),
        ("[server]\nport = [1]", "server.port is [1]; it must be a whole number"),
        ("[reading]\nshell = [1]", "reading.shell is [1]; it must be names"),
        ("[reading]\nshell_syntax = ['tubes']", "reading.shell_syntax is ['tubes']; it must be any of pipes, "),
        ("[clients]\nxml = 'emacs'", "clients.xml is 'emacs'; it must be auto, off, cline-legacy, "),
        ("[[upstream]]\nname = 'a'", "the upstream 'a' needs a base_url"),
        (
            "[[upstream]]\nbase_url='http://a'\n[[upstream]]\nbase_url='http://b'",
            "two [[upstream]] with the name 'default'",
        ),
        ("[[upstream]]\nbase_url='http://a'\n[[model]]\nname='m'\nupstream='defalt'", "did you mean default?"),
        ("[[model]]\nupstream='x'", "a [[model]] needs a name"),
        ("[[model]]\nname='m'\nupstream='x'", "unknown upstream 'x'; known are: none"),
        (
            "[[upstream]]\nbase_url='http://a'\nheaders={'a b'='c'}",
            "headers is ***; it must be a table of header names",
        ),
        ("[[upstream]]\nbase_url='http://a'\nwire='smoke'", "wire is 'smoke'; it must be anthropic_messages, "),
        (
            "[[upstream]]\nbase_url='http://a'\napi_key='env:NO_KEY'",
            "the environment variable NO_KEY, which is not set",
        ),
        ("port = ", "is not TOML"),
    ],
)
def test_a_bad_file_is_refused_with_key_and_place(tmp_path: Path, text: str, message: str) -> None:
    path = toml(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load({}, {}, path)
    assert str(path) in caught.value.message
    assert message in caught.value.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the settings in .*none\.toml: No such file"):
        load({}, {}, tmp_path / "none.toml")


def test_a_stray_variable_is_noted() -> None:
    assert load({}, {"TOOLGLOT_PROT": "1"}).notes == ("TOOLGLOT_PROT is not a setting; did you mean TOOLGLOT_PORT?",)


def test_which_file_is_read(tmp_path: Path) -> None:
    assert find_file({}, {}, tmp_path) is None
    path = toml(tmp_path, "")
    assert find_file({}, {}, tmp_path) == path
    assert find_file({}, {"TOOLGLOT_CONFIG": "b.toml"}, tmp_path) == Path("b.toml")
    assert find_file({"config": "a.toml"}, {"TOOLGLOT_CONFIG": "b.toml"}, tmp_path) == Path("a.toml")


# Upstreams and models

COMPLETE_FILE = """
[[upstream]]
name = "big"
base_url = "https://big.example/v1/"
api_key = "env:BIG_KEY"
headers = { x-team = "os.environ/TEAM" }
read_timeout = 60

[[upstream]]
name = "small"
base_url = "http://localhost:8000"

[[model]]
name = "coder"
upstream = "big"
model = "Qwen/Qwen3-Coder-480B"

[[model]]
name = "local/*"
upstream = "small"
model = "*"
mode = "text"

[[model]]
name = "*"
upstream = "small"
model = "smollm2"
dialect = "roo_xml"
"""
ENVIRON = {"BIG_KEY": KEY, "TEAM": "tools"}


def test_a_file_names_upstreams_and_models(tmp_path: Path) -> None:
    settings = load({}, ENVIRON, toml(tmp_path, COMPLETE_FILE))
    big = settings.upstreams[0]
    assert big.api_key.reveal() == KEY
    assert big.headers == {"x-team": "tools"}
    assert (big.base_url, big.read_timeout, big.connect_timeout) == ("https://big.example/v1", 60.0, 10.0)
    assert settings.sources["upstream.big"].endswith("toolglot.toml")


@pytest.mark.parametrize(
    ("asked", "upstream", "model", "dialect", "mode"),
    [
        ("coder", "big", "Qwen/Qwen3-Coder-480B", "qwen3_coder", "auto"),
        ("local/qwen2.5", "small", "qwen2.5", "hermes", "text"),
        ("local/x", "small", "x", DEFAULT_DIALECT, "text"),
        ("anything", "small", "smollm2", "roo_xml", "auto"),
        ("", "small", "smollm2", "roo_xml", "auto"),
    ],
)
def test_a_name_finds_its_model(tmp_path: Path, asked: str, upstream: str, model: str, dialect: str, mode: str) -> None:
    settings = load({}, ENVIRON, toml(tmp_path, COMPLETE_FILE))
    found, place = settings.model_for(asked)
    assert found == ModelSettings(name=asked, upstream=upstream, model=model, dialect=dialect, mode=mode)
    assert place.name == upstream


def test_general_dialect_and_mode_hold_where_a_model_has_none(tmp_path: Path) -> None:
    settings = load({"dialect": "glm45", "mode": "native"}, ENVIRON, toml(tmp_path, COMPLETE_FILE))
    coder, local, rest = (settings.model_for(name)[0] for name in ("coder", "local/a", "x"))
    assert [model.dialect for model in (coder, local, rest)] == ["glm45", "glm45", "roo_xml"]
    assert [model.mode for model in (coder, local, rest)] == ["native", "text", "native"]


def test_an_unknown_name_is_a_404_that_lists_the_known_ones(tmp_path: Path) -> None:
    path = toml(tmp_path, "[[upstream]]\nbase_url='http://a'\n[[model]]\nname='one'\n[[model]]\nname='two'")
    with pytest.raises(UnknownModelError) as caught:
        load({}, {}, path).model_for("three")
    assert (caught.value.status, caught.value.code) == (404, "model_not_found")
    assert caught.value.message == "There is no model 'three' here; known are: one, two."
    with pytest.raises(UnknownModelError, match="no model is configured"):
        Settings().model_for("x")


def test_an_unknown_name_can_go_to_the_only_model(tmp_path: Path) -> None:
    one = "[[upstream]]\nbase_url='http://a'\n[[model]]\nname='coder'\nmodel='qwen'"
    settings = load({"unknown_model": "only_model"}, {}, toml(tmp_path, one))
    model, upstream = settings.model_for("gpt-5")
    assert (model.name, model.model, upstream.base_url) == ("gpt-5", "qwen", "http://a")
    with pytest.raises(UnknownModelError, match="known are: coder"):
        load({}, {}, toml(tmp_path, one)).model_for("gpt-5")
    two = toml(tmp_path, one + "\n[[model]]\nname='other'")
    with pytest.raises(UnknownModelError, match="known are: coder, other"):
        load({"unknown_model": "only_model"}, {}, two).model_for("gpt-5")


def test_an_endless_name_is_no_client() -> None:
    settings = load({"base_url": "http://h"}, {})
    with pytest.raises(UnknownModelError) as caught:
        settings.model_for("m" * 501)
    assert len(caught.value.message) < 200


def test_many_names_are_not_all_listed() -> None:
    settings = Settings(models=tuple(ModelSettings(name=f"m{number}") for number in range(50)))
    with pytest.raises(UnknownModelError, match=r"m9 and 40 more.$"):
        settings.model_for("x")


def test_an_upstream_without_models_answers_to_every_name(tmp_path: Path) -> None:
    settings = load({}, {}, toml(tmp_path, "[[upstream]]\nname = 'a'\nbase_url = 'http://a'"))
    model, upstream = settings.model_for("qwen3-coder-30b")
    assert (model.model, model.dialect, upstream.name) == ("qwen3-coder-30b", "qwen3_coder", "a")


@pytest.mark.parametrize(
    ("given", "kept", "endpoint"),
    [
        ("http://h:1", "http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h:1/", "http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h/v1", "http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1", "http://h/v1/chat/completions"),
        ("https://h/api/paas/v4", "https://h/api/paas/v4", "https://h/api/paas/v4/chat/completions"),
        (
            "https://h/openai?api-version=1",
            "https://h/openai?api-version=1",
            "https://h/openai/chat/completions?api-version=1",
        ),
    ],
)
def test_an_address_works_with_and_without_v1(given: str, kept: str, endpoint: str) -> None:
    upstream = load({"base_url": given}, {}).upstreams[0]
    assert upstream.base_url == kept
    assert upstream.endpoint("/chat/completions") == endpoint


def test_the_environment_alone_is_enough() -> None:
    settings = load({}, {"OPENAI_BASE_URL": "http://h/v1", "OPENAI_API_KEY": KEY})
    model, upstream = settings.model_for("gpt-x")
    assert (model.model, upstream.base_url, upstream.api_key) == ("gpt-x", "http://h/v1", Secret(KEY))
    assert (settings.sources["base_url"], settings.sources["api_key"]) == ("OPENAI_BASE_URL", "OPENAI_API_KEY")
    assert settings.notes == ()


def test_one_model_for_all_names() -> None:
    settings = load({"base_url": "http://h", "model": "qwen3-coder"}, {"OPENAI_BASE_URL": "http://other"})
    model, upstream = settings.model_for("gpt-x")
    assert (model.name, model.model, model.dialect) == ("gpt-x", "qwen3-coder", "qwen3_coder")
    assert upstream.base_url == "http://h"


def test_a_key_lying_around_is_not_sent_anywhere(tmp_path: Path) -> None:
    lone = load({}, {"OPENAI_API_KEY": KEY})
    assert lone.upstreams == ()
    assert "OPENAI_API_KEY is set and not used" in lone.notes[0]
    filed = load(
        {}, {**ENVIRON, "OPENAI_API_KEY": "sk-other", "OPENAI_BASE_URL": "http://x"}, toml(tmp_path, COMPLETE_FILE)
    )
    assert [upstream.api_key.reveal() for upstream in filed.upstreams] == [KEY, ""]
    assert filed.notes == ("OPENAI_BASE_URL is set and not used: the file names the upstreams",)


def test_a_key_that_was_typed_needs_an_address() -> None:
    with pytest.raises(UsageError, match="--api-key belongs to an upstream: give --base-url too"):
        load({"api_key": KEY}, {})


def test_the_command_line_adds_an_upstream_to_those_of_a_file(tmp_path: Path) -> None:
    settings = load({"base_url": "http://typed"}, ENVIRON, toml(tmp_path, COMPLETE_FILE))
    assert settings.model_for("coder")[1].name == "big"
    assert settings.model_for("anything")[1].base_url == "http://typed"


def test_aliases_in_a_file_and_the_address_in_the_environment(tmp_path: Path) -> None:
    path = toml(tmp_path, "[[model]]\nname = 'coder'\nmodel = 'qwen3-coder'")
    settings = load({}, {"OPENAI_BASE_URL": "http://h"}, path)
    assert [settings.model_for(name)[0].model for name in ("coder", "x")] == ["qwen3-coder", "x"]


def test_an_upstream_can_be_added_afterwards(tmp_path: Path) -> None:
    path = toml(tmp_path, "[[model]]\nname = 'tiny'\nmodel = 'smollm2'")
    settings = load({}, {}, path)
    with pytest.raises(UnknownModelError, match="No upstream is configured"):
        settings.model_for("tiny")
    local = settings.answered_by(Upstream("local", "http://127.0.0.1:1"), ModelSettings(model="smollm2", mode="text"))
    for asked in ("tiny", "other"):
        model, upstream = local.model_for(asked)
        assert (model.model, upstream.name) == ("smollm2", "local")


# The store


@in_one_test(
    ("url", "shown", "secrets"),
    [
        ("none", "none", ()),
        ("sqlite:toolglot.db", "sqlite:toolglot.db", ()),
        ("sqlite:/srv/my store.db", "sqlite:/srv/my store.db", ()),
        ("postgresql://h/db", "postgresql://h/db", ()),
        ("postgresql://me@h:5432/db", "postgresql://***@h:5432/db", ()),
        ("postgres://me:swordfish@h/db", "postgres://***@h/db", ("swordfish",)),
        (
            "postgresql://me:sword%40fish@h/db?sslmode=require",
            "postgresql://***@h/db?***",
            ("sword%40fish", "sword@fish"),
        ),
        ("postgresql:///db?password=swordfish&user=me", "postgresql:///db?***", ("swordfish",)),
    ],
)
def test_a_store_url_is_shown_without_its_secrets(url: str, shown: str, secrets: tuple[str, ...]) -> None:
    store = load({}, {"TOOLGLOT_STORE_URL": f" {url} "}).store
    assert store.url.reveal() == url
    assert (repr(store.url), store.url.secrets) == (shown, secrets)
    shown_settings = json.dumps(describe_settings(load({"store_url": url}, {}))) + repr(store)
    assert not any(secret in shown_settings for secret in secrets)


@in_one_test(
    "url",
    [
        *(
            "",
            "toolglot.db",
            "sqlite",
            "sqlite:",
            "sqlite:/",
            "sqlite://host/file.db",
            "sqlite::memory:",
            "sqlite:a\0b",
        ),
        *("mysql://me:swordfish@h/db", "postgresql://me:sword/fish@h/db", "postgresql://me:swordfish@h"),
        *("postgresql://me:swordfish@h:port/db", "postgresql://me:sword#fish@h/db"),
    ],
)
def test_a_store_url_that_cannot_be_right(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        load({"store_url": url}, {})
    assert "--store-url is ***; it must be none, sqlite: and the path of a file" in caught.value.message
    assert "fish" not in caught.value.message


def test_owners_differ_from_keys_and_each_other() -> None:
    owners = {owner_of(key) for key in (KEY, KEY + "x", "", "sha256:" + "0" * 64)}
    assert len(owners) == 4 and {len(owner) for owner in owners} == {16}
    assert owner_of(KEY) == owner_of(KEY)
    assert KeyHash.of(KEY).digest[:16] not in owners


# Secrets and keys


def test_a_secret_shows_nothing() -> None:
    upstream = Upstream("a", "http://a", Secret(KEY), headers={"x-api-key": KEY})
    for shown in (repr(upstream), str(upstream), f"{upstream.api_key}", repr(Settings(upstreams=(upstream,)))):
        assert KEY not in shown
    assert KEY not in str(asdict(upstream)["api_key"])
    assert repr(Secret()) == ""
    assert not Secret()
    assert deepcopy(upstream) == upstream == pickle.loads(pickle.dumps(upstream))
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2


@pytest.mark.parametrize("given", [KEY, "sha256:" + hashlib.sha256(KEY.encode()).hexdigest()])
def test_client_keys_are_kept_as_hashes_only(given: str) -> None:
    settings = load({}, {"TOOLGLOT_CLIENT_KEYS": f"other, {given}"})
    assert KEY not in repr(settings)
    assert admit(settings.server.keys, KEY)
    assert admit(settings.server.keys, "other")
    for wrong in ("", "sk", KEY + "x", str(settings.server.keys[1]), "\udcff", "ключ"):
        assert not admit(settings.server.keys, wrong)


def test_an_empty_list_of_keys_admits_no_client() -> None:
    assert not admit((), KEY)
    assert not admit((KeyHash.of(""),), "")


def test_every_key_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append(left)
        return left == right

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert admit([KeyHash.of("a"), KeyHash.of("b"), KeyHash.of("c")], "a")
    assert len(compared) == 3


def test_a_new_key_is_random_and_long() -> None:
    assert make_key(bytes) == "sk-toolglot-" + "A" * 43
    assert admit([KeyHash.of(str(KeyHash.of("x")))], "x")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "LOCALHOST.", "::1", "[::1]"])
def test_loopback_needs_no_key(host: str) -> None:
    check_binding(load({"host": host}, {}))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", "localhost.example.org", ""])
def test_any_other_address_needs_a_key(host: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_binding(load({"host": host}, {}))
    assert "toolglot key" in caught.value.message
    assert "127.0.0.1" in caught.value.message
    check_binding(load({"host": host}, {"TOOLGLOT_CLIENT_KEYS": KEY}))


# What readers get, and what is written down


def test_reading_settings_are_those_of_the_reader() -> None:
    settings = load({}, {"TOOLGLOT_UNKNOWN_TOOLS": "text", "TOOLGLOT_SHELL": "ls"})
    reading, patterns, default = settings.reading, settings.compiled_patterns, toolglot.Options()
    assert (reading.unknown_tools, reading.shell) == ("text", ("ls",))
    assert (reading.min_confidence, reading.shell_syntax) == (default.min_confidence, default.shell_syntax)
    known = {dialect.name: dialect.confidence for dialect in all_dialects()}
    assert patterns.off == frozenset() and not patterns.require_cwd
    assert patterns.confidences == {name: known[name] for names in PATTERNS.values() for name in names}


PATTERN_SETTINGS = [
    ("[patterns]\njson_code_blocks = false", "json_code_blocks", False),
    ("[patterns]\njsonCodeBlocks = false", "json_code_blocks", False),
    ("[patterns]\nshellCommands = true\n[reading]\nshell = ['ls']", "shell_commands", True),
    ("[patterns]\nshellCommandsConfidence = 0.97", "shell_commands_confidence", 0.97),
    ("[patterns]\nrequireCwd = true", "require_cwd", True),
    ("[patterns]\nnaturalLanguage = false", "natural_language", False),
]


@pytest.mark.parametrize(("text", "name", "value"), PATTERN_SETTINGS)
def test_patterns_are_set_in_either_spelling(text: str, name: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / "toolglot.toml"
    path.write_text(text)
    settings = load({}, {}, path)
    assert getattr(settings.patterns, name) == value and not settings.notes
    assert getattr(load({}, {f"TOOLGLOT_PATTERNS_{name.upper()}": str(value)}).patterns, name) == value


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[patterns]\nnaturalLanguage = true", "natural_language is True; it must be false"),
        ("[patterns]\njsonCodeBlock = true", "unknown key 'jsonCodeBlock'; did you mean json_code_blocks?"),
        ("[patterns]\njson_code_blocks = 2", "must be true or false"),
        ("[patterns]\nbare_json_confidence = 2", "must be a number from 0 to 1"),
        ("[patterns]\nrequireCwd = true\nrequire_cwd = true", "has require_cwd twice"),
    ],
)
def test_wrong_patterns_are_refused(text: str, error: str, tmp_path: Path) -> None:
    path = tmp_path / "toolglot.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load({}, {}, path)
    assert error in caught.value.message


def test_shell_commands_without_a_list_are_noted() -> None:
    (note,) = load({}, {"TOOLGLOT_PATTERNS_SHELL_COMMANDS": "true"}).notes
    assert note == "patterns.shell_commands is on and reading.shell lists no commands, so no shell fence is read"


def show_default(value: Any) -> str:
    match value:
        case None:
            return "`auto`"
        case bool():
            return f"`{str(value).lower()}`"
        case int() if value and value % (1 << 10) == 0:
            return f"`{value >> 20} MiB`" if value >= 1 << 20 else f"`{value >> 10} KiB`"
        case float():
            return f"`{value:g}`"
        case int():
            return f"`{value}`"
        case tuple() if value:
            return f"`{', '.join(value)}`"
    return f"`{value}`" if value else ""


def rows(settings: Iterable[Setting]) -> Iterator[str]:
    for one in settings:
        variables = ", ".join(f"`{name}`" for name in one.variables)
        key = one.key.lstrip(".")
        yield f"| `{key}` | {show_default(one.default)} | {variables} | {one.description} | {one.kind.accepts} |"


def tables() -> dict[str, str]:
    head = "| setting | default | environment | meaning | accepts |\n|---|---|---|---|---|\n"
    parts = {name: tuple(FIELDS[name].values()) for name in (*SECTIONS, *TABLES)} | {"fallback": FALLBACK}
    return {name: head + "\n".join(rows(part)) + "\n" for name, part in parts.items()}


def test_the_documentation_names_every_setting(request: pytest.FixtureRequest) -> None:
    """``pytest --update-samples`` writes the tables anew."""
    text = CONFIGURATION.read_text("utf-8")
    for name, table in tables().items():
        marked = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
        if request.config.getoption("--update-samples"):
            text = marked.sub(table.replace("\\", "\\\\"), text, count=1)
            CONFIGURATION.write_text(text, "utf-8")
        found = marked.search(text)
        assert found is not None, name
        assert found.group() == table


def test_the_example_in_the_documentation_is_a_file_that_loads(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", CONFIGURATION.read_text("utf-8"), re.DOTALL)
    assert example is not None
    environ = dict.fromkeys(re.findall(r"env:(\w+)", example[1]), KEY)
    settings = load({}, environ, toml(tmp_path, example[1]))
    assert settings.upstreams
    assert settings.models


# -- the embedded model ------------------------------------------------------------------------------------------------

URL = "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    ("arguments", "environ", "file", "embedded", "upstream"),
    [
        ({"embedded": "smollm2"}, {"OPENAI_BASE_URL": URL}, "", "smollm2", ""),
        ({"embedded": "smollm2"}, {"TOOLGLOT_BASE_URL": URL}, "", "smollm2", ""),
        ({}, {"TOOLGLOT_EMBEDDED": "smollm2", "OPENAI_BASE_URL": URL}, "", "smollm2", ""),
        ({"base_url": URL}, {"TOOLGLOT_EMBEDDED": "smollm2"}, "", "", URL),
        ({}, {"TOOLGLOT_BASE_URL": URL}, "[embedded]\nmodel = 'smollm2'", "", URL),
        ({}, {"OPENAI_BASE_URL": URL}, "[embedded]\nmodel = 'smollm2'", "smollm2", ""),
        ({}, {}, f"[embedded]\nmodel = 'smollm2'\n[[upstream]]\nname = 'a'\nbase_url = '{URL}'", "smollm2", URL),
    ],
)
def test_an_embedded_model_or_a_base_url(
    arguments: dict[str, str], environ: dict[str, str], file: str, embedded: str, upstream: str, tmp_path: Path
) -> None:
    """The source that comes first decides, and a note names the one that is not used."""
    settings = load(arguments, environ, toml(tmp_path, file) if file else None)
    assert settings.embedded.model == embedded
    assert [one.base_url for one in settings.upstreams] == ([upstream] if upstream else [])
    if not (embedded and upstream):
        assert any("not used" in note or "not started" in note for note in settings.notes)


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        ({"embedded": "smollm2", "base_url": URL}, {}),
        ({}, {"TOOLGLOT_EMBEDDED": "smollm2", "TOOLGLOT_BASE_URL": URL}),
    ],
)
def test_two_fallback_upstreams_of_one_source_are_an_error(arguments: dict[str, str], environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"(--embedded|TOOLGLOT_EMBEDDED) and .*BASE.URL|--base-url.*give only one"):
        load(arguments, environ)


def test_a_model_file_is_relative_to_the_settings_file(tmp_path: Path) -> None:
    path = toml(tmp_path, "[embedded]\nmodel = 'models/own.gguf'")
    assert load({}, {}, path).embedded.model == str(tmp_path / "models" / "own.gguf")
    assert load({"embedded": "models/own.gguf"}, {}, path).embedded.model == "models/own.gguf"


def test_settings_for_a_program_name_what_is_unknown() -> None:
    settings = make_settings(base_url="http://127.0.0.1:9/v1", client_keys="one,two", mode="text", port=0)
    assert (settings.upstreams[0].base_url, settings.tool_calling.mode) == ("http://127.0.0.1:9/v1", "text")
    assert len(settings.server.keys) == 2 and settings.server.port == 0
    with pytest.raises(UsageError, match="clientkeys is not a setting; did you mean client_keys"):
        make_settings(clientkeys="one")
