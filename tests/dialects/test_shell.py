"""Shell fences: seed 000, phase 2. Off by default, and never more than the caller has listed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.gateway import gateway, run
from support.rows import in_one_test
from support.xmlprompts import write_cline, write_roo

import toolglot
from toolglot.core.errors import UsageError
from toolglot.core.options import SHELL_SYNTAX, Options
from toolglot.dialects.codecs.shell import is_allowed
from toolglot.sim import SimOptions as SimOptions
from toolglot.sim.script import parse_script

PLAIN = ("git status", "npm test", "ls -la src", 'git commit -m "a text"', "ls")
SYNTAX = {
    "pipes": "git log | ls",
    "redirects": "git log > out.txt",
    "substitution": "ls $(git root)",
    "chains": "npm test && git status",
}
NEVER = ("", "rm -rf /", "sudo ls", "ls {a,b}", "ls\nrm x", "ls \\", "./ls", "LS")
HIDDEN = (
    "git log | rm",
    "ls; rm x",
    "ls & rm x",
    "ls && rm x",
    "ls || rm x",
    "ls $(rm x)",
    "ls `rm x`",
    "ls `rm x` ls",
)


@pytest.mark.parametrize("line", PLAIN)
def test_plain_commands(line: str) -> None:
    assert is_allowed(line, Options(shell=("git", "npm", "ls")))


@pytest.mark.parametrize("name", SYNTAX)
def test_syntax_must_be_allowed_by_name(name: str) -> None:
    commands = ("git", "npm", "ls")
    others = tuple(other for other in SHELL_SYNTAX if other != name)
    assert not is_allowed(SYNTAX[name], Options(shell=commands))
    assert not is_allowed(SYNTAX[name], Options(shell=commands, shell_syntax=others))
    assert is_allowed(SYNTAX[name], Options(shell=commands, shell_syntax=(name,)))


@in_one_test("line", [*NEVER, *HIDDEN])
def test_what_is_not_listed_never_runs(line: str) -> None:
    assert not is_allowed(line, Options(shell=("git", "npm", "ls"), shell_syntax=SHELL_SYNTAX))


def test_unknown_syntax_is_refused() -> None:
    with pytest.raises(UsageError, match="tubes"):
        Options(shell_syntax=("tubes",))


TOOL = {
    "name": "execute_command",
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string"}, "cwd": {"type": "string"}},
        "required": ["command"],
    },
}
FENCE = "Let me run the tests:\n\n```bash\nnpm test\n```"


@pytest.mark.parametrize(
    "options, calls",
    [
        ({}, []),
        ({"shell": ["npm"]}, []),
        ({"min_confidence": 0.8}, []),
        ({"shell": ["git"], "min_confidence": 0.8}, []),
        ({"shell": ["npm"], "min_confidence": 0.8}, [{"command": "npm test"}]),
        ({"shell": ["npm"], "min_confidence": 0.8, "shell_cwd": "/srv"}, [{"command": "npm test", "cwd": "/srv"}]),
    ],
)
def test_the_list_and_the_threshold_must_both_agree(options: dict[str, Any], calls: list[Any]) -> None:
    read = toolglot.read(FENCE, [TOOL], **options)
    assert [json.loads(call.arguments) for call in read.calls] == calls
    if calls:
        assert read.calls[0].confidence == 0.8


ASK = {
    "model": "sim",
    "messages": [{"role": "system", "content": write_roo()}, {"role": "user", "content": "Test it."}],
}


@pytest.mark.parametrize("stream", [False, True])
def test_for_an_xml_client_with_an_audit(stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "toolglot.requests")

    async def check() -> None:
        sim = SimOptions(script=parse_script({"answer": [{"when": "Test", "text": FENCE}]}))
        async with gateway(sim, mode="text", shell="npm", min_confidence="0.8", shell_cwd="/srv") as gate:
            answer = await gate.ask(ASK | {"stream": stream})
            text = answer.joined[0] if stream else answer.message["content"]
            assert text == (
                "Let me run the tests:\n\n<execute_command>\n<command>npm test</command>\n<cwd>/srv</cwd>\n</execute_command>"
            )

    run(check)
    assert "a shell fence became a call: ```bash" in caplog.text


def test_off_by_default_for_xml_clients() -> None:
    async def check() -> None:
        sim = SimOptions(script=parse_script({"answer": [{"when": "Test", "text": FENCE}]}))
        async with gateway(sim, mode="text") as gate:
            for prompt in (write_roo(), write_cline()):
                ask = {"model": "sim", "messages": [{"role": "system", "content": prompt}, ASK["messages"][1]]}
                assert (await gate.ask(ask)).message["content"] == FENCE

    run(check)
