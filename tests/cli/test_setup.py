"""``toolglot setup`` and ``toolglot doctor``: files in a home directory, a gateway, a simulated upstream."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from support.loopback import Loop, Sim, running_gateway, running_loop, running_sim

import toolglot
from toolglot.cli.gateway_contact import GatewayContact
from toolglot.cli.main import main
from toolglot.clients.agents import AGENTS
from toolglot.config import KeyHash
from toolglot.sim import running
from toolglot.sim.qwen_web import ChatSimOptions, ChatSimulation
from toolglot.sim.qwen_web import make_app as make_chat_app

Cli = Callable[..., tuple[int, str, str]]
WITH_FILES = [agent.name for agent in AGENTS if agent.files]
KEY = "tg-0123456789abcdef0123456789abcdef"

BEFORE = {
    ".claude/settings.json": '{\r\n  // mine\r\n  "env": {"A": "1"}\r\n}',
    ".codex/config.toml": '# mine\nmodel = "x"\n\n[tools]\nview_image = true',
    ".gemini/.env": "GEMINI_API_KEY=mine\n",
    ".config/opencode/opencode.jsonc": '{"theme": "x",}',
    ".continue/config.yaml": "name: Mine\nversion: 0.0.1\nschema: v1\nmodels: []\n",
    ".config/goose/config.yaml": "extensions:\n  developer:\n    enabled: true\n",
    ".aider.conf.yml": "# mine\nmodel: gpt\n",
}
"""Files that people have already."""
EXISTING = ("claude", "codex", "gemini", "opencode", "continue", "goose", "aider")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(
            ("TOOLGLOT_", "XDG_", "OPENAI_", "ANTHROPIC_", "CLAUDE", "CODEX", "GEMINI", "CLINE", "QWEN")
        ):
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], home: Path) -> Cli:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        out, errors = capsys.readouterr()
        return code, out, errors

    return run


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with running_loop() as loop:
        yield loop


@pytest.fixture(scope="module")
def upstream(loop: Loop) -> Iterator[str]:
    with running_sim(loop) as sim:
        yield sim.base_url


@pytest.fixture(scope="module")
def gateway(loop: Loop) -> Iterator[str]:
    with running_sim(loop) as sim, running_gateway(loop, sim) as url:
        yield url


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


# setup


@pytest.mark.parametrize("existing", [False, True], ids=["new", "existing"])
@pytest.mark.parametrize("client", WITH_FILES)
def test_undo_restores_every_byte(client: str, existing: bool, cli: Cli, home: Path, gateway: str) -> None:
    for name, text in BEFORE.items() if existing else ():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(text.encode())
    before = snapshot(home)
    code, out, errors = cli("setup", client, "--url", gateway)
    assert (code, errors) == (0, "") and "called get_weather(" in out and "written" in out
    once = snapshot(home)
    assert once != before
    code, out, _ = cli("setup", client, "--url", gateway)
    assert code == 0 and "unchanged" in out and "written" not in out and snapshot(home) == once
    assert cli("setup", client, "--url", gateway, "--model", "another", "--no-test")[0] == 0
    assert snapshot(home) != once
    code, out, _ = cli("setup", client, "--undo")
    assert code == 0 and ("restored" in out) is (client in EXISTING and existing) and "took" not in out
    assert snapshot(home) == before
    assert "nothing to undo" in cli("setup", client, "--undo")[1]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_print_writes_nothing(agent: Any, cli: Cli, home: Path) -> None:
    code, out, _ = cli("setup", agent.name, "--print", "--model", "m-7", "--url", "http://127.0.0.1:9")
    assert code == 0 and "http://127.0.0.1:9" in out and "m-7" in out
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_the_test_call_uses_the_wire_of_the_client(agent: Any, cli: Cli, gateway: str) -> None:
    code, out, _ = cli("setup", agent.name, "--url", gateway, "--json")
    document = json.loads(out)
    assert code == 0 and document["address"] == gateway.removesuffix("/v1") and document["model"] == "sim"
    test = document["test"]
    assert test["called"] and test["wire"] == agent.wire and test["mode"] == "text" and test["dialect"]
    assert test["call"] == 'get_weather({"city":"Paris"})'


def test_new_files_are_private_and_others_keep_their_permissions(cli: Cli, home: Path, gateway: str) -> None:
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").touch(0o640)
    for client in ("codex", "claude"):
        assert cli("setup", client, "--url", gateway, "--no-test")[0] == 0
    assert (home / ".codex/config.toml").stat().st_mode & 0o777 == 0o640
    assert (home / ".claude/settings.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "'nope' is not a known client; known are: claude, codex"),
        (["claude", "--url", "http://127.0.0.1:9"], "start it with 'toolglot serve'"),
        (["claude", "--url", "127.0.0.1:9/v1"], "no gateway answers at http://127.0.0.1:9:"),
    ],
)
def test_mistakes_name_the_next_step(arguments: list[str], message: str, cli: Cli, home: Path) -> None:
    code, out, errors = cli("setup", *arguments)
    assert code == 2 and out == "" and message in errors and list(home.iterdir()) == []


def test_another_server_is_not_taken_for_a_gateway(cli: Cli, upstream: str) -> None:
    code, _, errors = cli("setup", "claude", "--url", upstream)
    assert code == 2 and "another server answers" in errors


def test_a_file_that_cannot_be_edited_stays(cli: Cli, home: Path, gateway: str) -> None:
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text('{"env": ', "utf-8")
    code, _, errors = cli("setup", "claude", "--url", gateway)
    assert code == 2 and "cannot be edited: line 1 is not JSON" in errors and "--print" in errors
    assert path.read_text("utf-8") == '{"env": ' and len(list(path.parent.iterdir())) == 1


def test_client_keys(cli: Cli, home: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_sim(loop) as sim, running_gateway(loop, sim, client_keys=str(KeyHash.of(KEY))) as url:
        code, _, errors = cli("setup", "claude", "--url", url)
        assert code == 2 and "needs a client key" in errors and "TOOLGLOT_KEY" in errors
        code, _, errors = cli("setup", "claude", "--url", url, "--key", "wrong")
        assert code == 2 and "refuses this client key" in errors
        monkeypatch.setenv("TOOLGLOT_KEY", KEY)
        for client in ("claude", "codex", "gemini", "opencode"):
            code, out, errors = cli("setup", client, "--url", url)
            assert code == 0 and "called get_weather" in out, errors
    assert KEY in (home / ".claude/settings.json").read_text("utf-8")
    assert KEY not in (home / ".codex/config.toml").read_text("utf-8")


def test_a_key_that_an_earlier_file_demands_is_pointed_out(cli: Cli, home: Path, gateway: str) -> None:
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('[model_providers.toolglot]\nname = "x"\nenv_key = "TOOLGLOT_KEY"\n', "utf-8")
    code, out, _ = cli("setup", "codex", "--url", gateway, "--no-test")
    assert code == 0 and f"note: {path} has model_providers.toolglot.env_key: Codex wants that variable set" in out
    code, out, _ = cli("setup", "codex", "--url", gateway, "--no-test", "--key", "k")
    assert code == 0 and "has model_providers" not in out


def test_several_models_must_be_chosen_from(cli: Cli, home: Path, loop: Loop, tmp_path: Path) -> None:
    with running_sim(loop) as sim:
        file = tmp_path / "two.toml"
        models = "".join(f'[[model]]\nname = "{name}"\nmodel = "sim"\n' for name in ("big", "small"))
        file.write_text(f'[[upstream]]\nname = "u"\nbase_url = "{sim.base_url}"\n{models}', "utf-8")
        with running_gateway(loop, sim, file) as url:
            code, _, errors = cli("setup", "claude", "--url", url)
            assert code == 2 and "--model; there are: big, small" in errors
            assert cli("setup", "claude", "--url", url, "--model", "small")[0] == 0
            before = snapshot(home)
            code, out, errors = cli("setup", "claude", "--url", url, "--model", "none-such")
            assert code == 2 and "the test call failed: " in errors and "nothing was written" in errors
            assert "there are: big, small" in errors and (out, snapshot(home)) == ("", before)
            for option in ("--print", "--no-test"):
                code, out, _ = cli("setup", "claude", "--url", url, "--model", "none-such", option)
                assert code == 0 and "note: the gateway does not list 'none-such'; there are: big, small" in out


def test_a_model_that_is_not_listed_can_work(cli: Cli, gateway: str) -> None:
    code, out, _ = cli("setup", "claude", "--url", gateway, "--model", "sim:hermes")
    assert code == 0 and "note: the gateway does not list 'sim:hermes'" in out and "called get_weather(" in out


def test_the_test_call_has_a_name_of_its_own(loop: Loop) -> None:
    agents = []

    async def answer(request: web.Request) -> web.Response:
        agents.append(request.headers["User-Agent"])
        return web.json_response({"error": {"message": "no"}}, status=400)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    with loop.entered(running(app)) as address:
        GatewayContact(address, program="toolglot-setup").test_call("openai_chat", "m")
    assert agents == [f"toolglot-setup/{toolglot.__version__}"]


# doctor


def examine(cli: Cli, *arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    code, out, _ = cli("doctor", "--json", *arguments)
    findings: list[dict[str, str]] = json.loads(out)["findings"]
    return code, {finding["check"]: finding for finding in findings}


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


def test_a_healthy_gateway(cli: Cli, gateway: str, upstream: str) -> None:
    port = gateway.removesuffix("/v1").rpartition(":")[2]
    cli("setup", "claude", "--url", gateway, "--no-test")
    code, found = examine(cli, "--base-url", upstream, "--port", port)
    assert code == 0 and {finding["severity"] for finding in found.values()} == {"ok"}
    assert set(found) == {"settings", "upstream", "key", "model", "tools", "call", "context", "store", "port", "client"}
    assert "sim: text in the dialect roo_xml; rule" in found["tools"]["text"]
    assert '{"city":"Paris"}' in found["call"]["text"]
    assert (
        "a gateway is running" in found["port"]["text"] and "Claude Code uses this gateway" in found["client"]["text"]
    )


def test_a_gateway_that_runs_is_asked(cli: Cli, gateway: str) -> None:
    port = gateway.removesuffix("/v1").rpartition(":")[2]
    code, out, _ = cli("doctor", "--port", port)
    lines = [line for line in out.splitlines() if line.startswith(("ok       gateway", "ok       upstream"))]
    assert (
        code == 0 and "has its own" in lines[0] and "there are: sim" in lines[1] and "called get_weather(" in lines[2]
    )
    code, found = examine(cli, "--port", port, "--no-call")
    assert code == 0 and "there are: sim" in found["gateway"]["text"]


def test_a_gateway_that_cannot_be_used(
    cli: Cli, loop: Loop, upstream: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with running_sim(loop) as sim, running_gateway(loop, sim, client_keys=str(KeyHash.of(KEY))) as url:
        port = url.removesuffix("/v1").rpartition(":")[2]
        code, found = examine(cli, "--port", port)
        assert code == 1 and found["gateway"]["text"].endswith("needs a client key")
        assert "TOOLGLOT_KEY" in found["gateway"]["remedy"] and "--key" not in json.dumps(found["gateway"])
        monkeypatch.setenv("TOOLGLOT_KEY", KEY)
        assert examine(cli, "--port", port)[0] == 0
    with loop.entered(running(make_upstream(key="k"))) as address:
        broken = cast(Sim, SimpleNamespace(base_url=f"{address}/v1"))
        with running_gateway(loop, broken) as url:
            code, found = examine(cli, "--port", url.removesuffix("/v1").rpartition(":")[2])
    assert code == 2 and "lists no models" in found["gateway"]["text"] and "--base-url" in found["gateway"]["remedy"]


def test_lines_have_the_command_that_corrects(cli: Cli) -> None:
    port = free_port()
    code, out, _ = cli("doctor", "--base-url", f"http://127.0.0.1:{port}/v1", "--port", "0")
    assert code == 2
    line = next(line for line in out.splitlines() if line.startswith("problem  upstream"))
    assert f"127.0.0.1:{port}" in line and "does not answer" in line and "->  Start it, or give another address" in line


def test_an_unknown_model_is_named_with_those_that_exist(cli: Cli, upstream: str) -> None:
    code, found = examine(cli, "--base-url", upstream, "--model", "nope", "--port", "0")
    assert code == 2 and found["model"]["severity"] == "problem"
    assert "no model 'nope'; it has: sim" in found["model"]["text"] and "call" not in found


def test_no_call_is_made_on_demand(cli: Cli, loop: Loop) -> None:
    with running_sim(loop) as sim:
        code, found = examine(cli, "--base-url", sim.base_url, "--port", "0", "--no-call")
        assert code == 0 and "tools" in found and "call" not in found
        assert not [request for request in sim.since(0) if request.body]


def test_settings_that_are_wrong(cli: Cli, tmp_path: Path) -> None:
    code, found = examine(cli, "--port", "x")
    assert code == 2 and found["settings"]["severity"] == "problem" and "--port" in found["settings"]["text"]
    (tmp_path / "toolglot.toml").write_text("[server]\nprot = 1\n", "utf-8")
    code, found = examine(cli)
    assert code == 2 and "prot" in found["settings"]["text"]


def test_without_an_upstream_the_embedded_model_is_too_small(cli: Cli) -> None:
    code, found = examine(cli, "--port", "0")
    assert code == 1 and "far too small" in found["upstream"]["text"] and "--base-url" in found["upstream"]["remedy"]


def test_a_port_of_another_program(cli: Cli, upstream: str) -> None:
    port = upstream.removesuffix("/v1").rpartition(":")[2]
    code, found = examine(cli, "--port", port)
    assert code == 2 and "another program uses it" in found["port"]["text"]


def test_a_store_that_cannot_be_used(cli: Cli, upstream: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, found = examine(cli, "--base-url", upstream, "--port", "0", "--state-dir", str(tmp_path / "file"))
    assert code == 2 and found["store"]["severity"] == "problem" and "--state-dir" in found["store"]["remedy"]


def test_a_client_of_another_gateway(cli: Cli, gateway: str, upstream: str) -> None:
    cli("setup", "codex", "--url", gateway, "--no-test")
    code, found = examine(cli, "--base-url", upstream, "--port", free_port(), "--no-call")
    assert code == 1 and found["client"]["remedy"] == "toolglot setup codex"


# Upstreams that state more about themselves


def make_upstream(key: str = "", open_models: bool = False, **answers: Any) -> web.Application:
    """A server with a list of models and some further answers, by path. ``open_models``: the list needs no key."""
    app = web.Application()

    async def answer(request: web.Request) -> web.Response:
        is_open = open_models and request.path == "/v1/models"
        if key and not is_open and request.headers.get("Authorization") != f"Bearer {key}":
            return web.json_response({"error": {"message": f"Incorrect API key: {key}"}}, status=401)
        if request.path == "/v1/models":
            return web.json_response({"data": [{"id": "m", **answers.get("listed", {})}]})
        found = answers.get(request.path.strip("/").replace("/", "_"))
        return web.json_response(found, status=404 if found is None else 200)

    app.router.add_route("*", "/{path:.*}", answer)
    return app


@pytest.mark.parametrize("given", ["", "another-key"])
def test_whose_key_was_refused(given: str, cli: Cli, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGLOT_API_KEY", given)
    with loop.entered(running(make_upstream(key="the-right-key"))) as address:
        code, found = examine(cli, "--base-url", f"{address}/v1", "--port", "0")
    assert code == 2 and found["key"]["severity"] == "problem" and "model" not in found
    assert ("refuses the gateway's own key" if given else "the gateway has none for it") in found["key"]["text"]
    assert "not the key of your client" in found["key"]["text"] and "TOOLGLOT_API_KEY" in found["key"]["remedy"]
    assert "another-key" not in json.dumps(found)


@pytest.mark.parametrize("given", ["sim-token", "another-token", ""])
def test_the_web_chat_is_asked_for_its_key_a_model_and_a_streamed_call(
    given: str, cli: Cli, loop: Loop, tmp_path: Path
) -> None:
    simulation = ChatSimulation(ChatSimOptions(model_list="nested"))
    with loop.entered(running(make_chat_app(simulation))) as address:
        file = tmp_path / "toolglot.toml"
        file.write_text(
            f'[[upstream]]\nname = "q"\nwire = "qwen_web"\naccept_terms = true\nbase_url = "{address}"\n'
            f'api_key = "{given}"\n'
        )
        code, found = examine(cli, "--config", str(file), "--port", "0", "--state-dir", "none")
    if given == "sim-token":
        assert code == 0 and "accepted" in found["key"]["text"] and "qwen3.7-plus" in found["model"]["text"]
        assert '{"city":"Paris"}' in found["call"]["text"] and "262,144" in found["context"]["text"]
        assert simulation.chats == {} and simulation.seen, "the chat of the check is deleted"
    else:
        assert code == 2 and found["key"]["severity"] == "problem" and "model" not in found
        assert ("refuses the gateway's own key" if given else "the gateway has none for it") in found["key"]["text"]
        assert found["key"]["remedy"].startswith("set QWEN_TOKEN, or api_key")


@pytest.mark.parametrize(
    "secrets",
    ['api_key = "env:QWEN_TOKEN"', 'api_key = "file:nowhere"', 'headers = { X-Key = "env:QWEN_TOKEN" }'],
    ids=["variable", "file", "header"],
)
def test_commands_that_ask_the_gateway_need_no_secret_of_its_upstream(
    secrets: str, cli: Cli, gateway: str, tmp_path: Path
) -> None:
    file, port = tmp_path / "toolglot.toml", urlsplit(gateway).port
    upstream = f'[[upstream]]\nname = "q"\nwire = "qwen_web"\naccept_terms = true\nbase_url = "http://127.0.0.1:9"\n{secrets}\n'
    file.write_text(f'[server]\nport = {port}\n[store]\nurl = "none"\n{upstream}')
    code, out, errors = cli("setup", "roo", "--model", "sim")
    assert code == 0 and gateway in out, errors
    code, found = examine(cli)
    assert code == 0 and "not checked from here" in found["upstream"]["text"] and "called" in found["gateway"]["text"]
    (tmp_path / "ask.json").write_text(json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}))
    code, out, errors = cli("explain", "ask.json")
    assert code == 0 and "unknown=unknown" not in out, errors
    assert cli("explain", "ask.json", "--ask")[0] == 2
    file.write_text(file.read_text().replace(f"port = {port}", "port = 1"))
    code, found = examine(cli)
    assert code == 2 and found["settings"]["severity"] == "problem" and "upstream" not in found


def test_a_model_that_a_file_names_wrongly_is_corrected_there(cli: Cli, upstream: str, tmp_path: Path) -> None:
    """``--model`` is refused beside a file."""
    (tmp_path / "toolglot.toml").write_text(f'[[upstream]]\nbase_url = "{upstream}"\n[[model]]\nname = "nope"\n')
    code, found = examine(cli, "--port", "0", "--no-call")
    assert code == 2 and found["model"]["remedy"] == "name one in its [[model]], such as sim"


def test_a_key_that_only_chats_need(cli: Cli, loop: Loop) -> None:
    app = make_upstream(key="the-right-key", open_models=True)
    with loop.entered(running(app)) as address:
        code, out, _ = cli("doctor", "--base-url", f"{address}/v1", "--port", "0")
    keys = [line for line in out.splitlines() if line.split()[1] == "key"]
    assert code == 2 and "none is needed to list models" in keys[0]
    assert "problem" in keys[1] and "wants a key and the gateway has none for it" in keys[1]
    assert keys[1].endswith("->  set TOOLGLOT_API_KEY, or api_key of [[upstream]] 'default'") and "--dialect" not in out


@pytest.mark.parametrize(
    ("answers", "severity", "text", "remedy"),
    [
        ({"props": {"default_generation_settings": {"n_ctx": 4096}}}, "warning", "4,096", "-c 32768"),
        ({"props": {"default_generation_settings": {"n_ctx": 32768}}}, "ok", "m reads 32,768", ""),
        ({"api_show": {"parameters": "stop x\nnum_ctx 8192\n"}}, "warning", "8,192", "OLLAMA_CONTEXT_LENGTH"),
        ({"api_show": {"model_info": {"a.context_length": 131072}}}, "ok", "up to 131,072", ""),
        ({"listed": {"max_model_len": 2048}}, "warning", "2,048", "--max-model-len"),
        ({"props": [1], "api_show": {"model_info": 7}, "listed": {"n_ctx": "x"}}, "ok", "does not state", ""),
    ],
    ids=["llama", "llama-large", "ollama", "ollama-model", "listed", "odd"],
)
def test_context_size(answers: dict[str, Any], severity: str, text: str, remedy: str, cli: Cli, loop: Loop) -> None:
    with loop.entered(running(make_upstream(**answers))) as address:
        code, found = examine(cli, "--base-url", f"{address}/v1", "--port", "0", "--no-call")
    assert found["context"]["severity"] == severity and text in found["context"]["text"]
    assert remedy in found["context"]["remedy"] and code == (severity == "warning")


@pytest.mark.parametrize(
    ("message", "severity"),
    [({"content": ""}, "problem"), ({"content": "Sunny."}, "warning"), (None, "problem")],
    ids=["empty", "text", "refused"],
)
def test_answers_without_a_call(message: Any, severity: str, cli: Cli, loop: Loop) -> None:
    answer = message and {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    with loop.entered(running(make_upstream(v1_chat_completions=answer))) as address:
        code, found = examine(cli, "--base-url", f"{address}/v1", "--port", "0")
    assert found["call"]["severity"] == severity and "toolglot probe" in found["call"]["remedy"]
    assert code == (2 if severity == "problem" else 1)
