"""``.env.example`` agrees with the settings: every name is one, every value is accepted, every default is right."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from support.rows import in_one_test

from toolglot.clients.gateway_key import KEY_VARIABLE
from toolglot.config import load
from toolglot.config.loader import FILE_VARIABLE
from toolglot.config.settings import FALLBACK, SETTINGS, Setting
from toolglot.wires import all_wires

EXAMPLE = Path(__file__).resolve().parents[2] / ".env.example"
LINE = re.compile(r"^(# )?([A-Z][A-Z0-9_]+)=(.*)$", re.MULTILINE)
KNOWN: dict[str, Setting] = {name: one for one in (*SETTINGS, *FALLBACK) for name in one.variables}
ASSIGNED = {name: (bool(comment), value) for comment, name, value in LINE.findall(EXAMPLE.read_text("utf-8"))}
MATTER = {"base_url", "api_key", "model", "host", "port", "client_keys", "mode", "dialect", "store_url", "log_level"}


def test_every_name_is_a_setting() -> None:
    of_wires = {variable for wire in all_wires().values() for variable in wire.variables.values()}
    assert of_wires == {"QWEN_TOKEN", "QWEN_COOKIES"}
    assert set(ASSIGNED) - set(KNOWN) == {FILE_VARIABLE, KEY_VARIABLE, *of_wires}
    assert MATTER <= {KNOWN[name].flag for name in ASSIGNED if name in KNOWN}


@in_one_test("name", sorted(set(ASSIGNED) & set(KNOWN)))
def test_values_are_accepted_and_comments_show_defaults(name: str) -> None:
    commented, value = ASSIGNED[name]
    one = KNOWN[name]
    read = one.kind.read(value, name) if value else one.default
    assert not commented or read == one.default


def test_a_shell_reads_the_file() -> None:
    done = subprocess.run(
        ["sh", "-c", f"set -a; . '{EXAMPLE}'; env"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stderr == ""
    environ = dict(line.split("=", 1) for line in done.stdout.splitlines())
    settings = load({}, {name: value for name, value in environ.items() if name in ASSIGNED})
    assert settings.notes == ()
    assert [upstream.base_url for upstream in settings.upstreams] == ["http://127.0.0.1:8080/v1"]
