"""The console in a real browser while a real agent works through the gateway that serves it.

The agent's shell commands wait until the browser has shown the turn that made them, so every stage is seen whatever the
speed of the machine: the request in progress, the session in the list, the session view with one turn more each time.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from agents.agents import CLAUDE, Agent, CallOf, LastMessage, read_events
from agents.conftest import bare_environment
from agents.cycles import Endpoint, Journal
from agents.more_agents import OPENCODE_RUN
from agents.programs import Server, serving
from playwright.async_api import Page, expect
from support.browser import opened_browser, shown_page
from support.loopback import NOTES, Sim, running_loop, running_sim, script_task

END = "The notes are written."
WAITING = "until [ -e seen-{turn} ]; do sleep 0.05; done"
WAITS = (1, 3)
"""The turns that make a command that waits."""
PATIENCE = 60_000
"""Milliseconds for a program to start, or for one of its turns."""
TEST_SECONDS = 170.0
SLOW = {"pace": 50, "chunk": 3}
"""The first answer takes seconds, so that it is seen in progress."""


@dataclass(frozen=True, slots=True)
class Worker:
    """An agent, how the console names it, and its calls: a shell command that waits, and a file that is written."""

    agent: Agent
    shown_as: str
    wire: str
    shell: str
    write: CallOf

    def script(self) -> list[dict[str, object]]:
        wait = [(self.shell, {"command": WAITING.format(turn=turn), "description": "wait"}) for turn in WAITS]
        calls = [wait[0], self.write, wait[1]]
        first, *rest = script_task(self.agent.name, calls, END)
        return [first | SLOW, *rest]


def workers(project: Path) -> dict[str, Worker]:
    path = str(project / "notes.txt")
    return {
        "claude": Worker(
            CLAUDE, "claude-cli/", "anthropic_messages", "Bash", ("Write", {"file_path": path, "content": NOTES})
        ),
        "opencode": Worker(
            OPENCODE_RUN, "opencode/", "openai_chat", "bash", ("write", {"filePath": path, "content": NOTES})
        ),
    }


@pytest.fixture(params=workers(Path()))
def worker(request: pytest.FixtureRequest, project: Path) -> Worker:
    return workers(project)[request.param]


@pytest.fixture
def sim(worker: Worker) -> Iterator[Sim]:
    with running_loop() as loop, running_sim(loop, {"answer": worker.script()}, chunk=6) as sim:
        yield sim


@pytest.fixture
def gateway(sim: Sim, tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "gateway"
    folder.mkdir()
    (folder / "toolglot.toml").write_text(
        f'[[upstream]]\nname = "sim"\nbase_url = "{sim.base_url}"\n[store]\nbodies = "all"\n'
        '[[model]]\nname = "sim:*"\nmodel = "sim:*"\nmode = "text"\ndialect = "hermes"\n',
        "utf-8",
    )
    command = [sys.executable, "-m", "toolglot", "serve", "--port", "0"]
    with serving("gateway", command, folder, bare_environment(folder), folder / "gateway.log") as server:
        yield server


def test_a_session_is_seen_while_an_agent_works(
    worker: Worker, gateway: Server, project: Path, environment: dict[str, str], journal: Journal
) -> None:
    endpoint = Endpoint("hermes", f"{gateway.address}/v1")
    question = f"Note something. This is task {worker.agent.name}."

    async def watch() -> None:
        async with opened_browser() as browser:
            async with shown_page(browser, f"{gateway.address}/console") as shown:
                page = shown.page
                await expect(page.get_by_text("No sessions yet")).to_be_visible()
                working = asyncio.create_task(
                    asyncio.to_thread(worker.agent.run, endpoint, question, project, environment, TEST_SECONDS)
                )
                try:
                    await see_in_list(page, worker)
                    for turn in WAITS:
                        await expect(page.locator(".turn")).to_have_count(turn, timeout=PATIENCE)
                        assert not working.done(), "the agent waits for what the page shows"
                        (project / f"seen-{turn}").touch()
                finally:
                    for turn in WAITS:
                        (project / f"seen-{turn}").touch()
                    ended = await working
                journal.entries.append(ended)
                assert ended.code == 0
                assert worker.agent.listen(read_events(ended.stdout)) == LastMessage(END, [])
                assert (project / "notes.txt").read_bytes() == NOTES.encode()
                await see_session(page, worker)

    asyncio.run(asyncio.wait_for(watch(), TEST_SECONDS))


async def see_in_list(page: Page, worker: Worker) -> None:
    """The request is seen in progress, then its session in the list; open that."""
    await expect(page.locator(".open")).to_contain_text("in progress", timeout=PATIENCE)
    await expect(page.locator(".open li").first).to_contain_text("sim:hermes")
    row = page.locator(".virtual-body .row").filter(has_text=worker.shown_as).filter(has_text="1 turn · 1 call")
    await expect(row).to_contain_text("sim:hermes", timeout=PATIENCE)
    await row.locator("a").click()


async def see_session(page: Page, worker: Worker) -> None:
    """All turns, with their calls, and the file as the model wrote it and as the client got it."""
    await expect(page.locator(".turn")).to_have_count(4, timeout=PATIENCE)
    tools = [worker.shell, worker.write[0], worker.shell, "text"]
    assert await page.locator(".turn .turn-what").all_inner_texts() == tools
    facts = page.locator(".session-head .facts")
    await expect(facts).to_contain_text("Calls3")
    await expect(page.locator(".session-head .outcome")).to_have_text("ok")
    await page.locator(".turn").nth(1).click()
    await expect(page.locator(".segments .span-call").first).to_contain_text("<tool_call>")
    await expect(page.locator(".segments .span-parameter").last).to_contain_text("# Dependencies")
    await expect(page.locator(".event.call")).to_contain_text(worker.write[0])
    await expect(page.locator(".event.arguments")).to_contain_text("naïve café ☕ 日本語 &lt;not decoded&gt;")
    await page.locator("[data-tab=record]").click()
    await expect(page.locator("[role=tabpanel]")).to_contain_text(f'"wire": "{worker.wire}"')
