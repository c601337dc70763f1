"""Hostile texts in every field that the console can show, planted in the store itself: nothing of them is active.

What clients and models send is cleaned on its way into the store. Here the store has it all the same, in the fields with
closed sets of values, too; every view is opened, and every text and every attribute in the page is looked at.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from playwright.async_api import Page, expect
from support.browser import ShownPage, opened_browser, shown_page
from support.console import OpenedConsole, opened_console
from support.stores import record, session

from toolglot.config.rollout import NEAR_MISS
from toolglot.gateway.telemetry.record import Attempt, Record
from toolglot.gateway.telemetry.trace import StoredTrace, UpstreamPiece
from toolglot.store import open_store
from toolglot.store.interface import FailureRow

ACTIVE = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>'
DECEIVING = "\x07\x1b[31m\u202egnp\u202c\u2066x\u2069\u200b\u00ad\u2028\U000e0041\u3164\u206f"
TABS = ("answer", "request", "upstream", "attempts", "changes", "replay", "record")
LOOK = """() => {
  const found = [], odd = /[\\u0007\\u001b\\u00ad\\u200b\\u2028\\u202c\\u202e\\u2066\\u2069\\u206f\\u3164\\u{e0041}]/u;
  const walk = document.createTreeWalker(document, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walk.currentNode; node; node = walk.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE && node.parentElement?.id !== "data" && odd.test(node.data)) found.push(node.data.slice(0, 80));
    for (const one of node.attributes ?? []) {
      if (!["class", "value", "href", "download", "data-turn"].includes(one.name) && odd.test(one.value)) found.push(`${one.name}=${one.value.slice(0, 80)}`);
    }
  }
  if (document.querySelector("main img, main script, main svg")) found.push("an element");
  if (window.hacked) found.push("a script ran");
  return found;
}"""


def hostile(name: str) -> str:
    """A text that names its field."""
    return f"{name} {DECEIVING}{ACTIVE}"


def make_record(number: int, *, closed: bool) -> Record:
    """A record with hostile texts; ``closed``: also in the fields whose values are a closed set."""
    h = hostile

    def kind(name: str, value: str) -> str:
        return h(name) if closed else value

    attempts = [
        Attempt(upstream=h("upstream"), mode=h("mode"), dialect=h("dialect"), error=h("error"), duration=0.1)
        for _ in range(2)
    ]
    return Record(
        request_id=h("request_id"), time=datetime.now(UTC).isoformat(), wire=kind("wire", "openai_chat"), model=h("model"),
        upstream=h("upstream"), upstream_model=h("upstream_model"), mode=kind("mode", "text"),
        dialect=kind("dialect", "hermes"), client=h("client"), stream=True, offered=1, stripped=0, status=200, calls=1,
        tools=(h("tool"),), read_as=(h("read_as"),), repairs=(h("repair"),), rejected=(h("reason"),), notes=(h("note"),),
        chunks=1, bytes=9, first_chunk=0.1, duration=0.5, finish=h("finish"), usage={h("usage"): 1, "input_tokens": 1,
        "output_tokens": 1}, error=h("error"), client_gone=False, conversation=h("conversation"),
        arms={h("transformation"): h("arm"), "reading": "on"},
        outcomes={h("transformation"): {h("reason"): 1}, "reading": {NEAR_MISS: 1, h("reason"): 1}},
        transformed=(h("tool"),), confidences=(1.0,), complaints=(h("complaint"),), would=None,
        outcome=kind("outcome", "failed"), fault=kind("fault", "model"), attempts=tuple(attempts), prompt_bytes=100,
        stable_bytes=50, unstable_at=h("unstable_at"), agent=h("agent"), replay_of="" if number < 4 else f"rec_{3:030x}",
    )  # fmt: skip


def make_bodies(number: int) -> dict[str, bytes]:
    tool = {"type": "function", "function": {"name": "read", "description": hostile("tool"), "parameters": {}}}
    messages = [
        {"role": hostile("role"), "content": hostile(f"content {number}")},
        {"role": "user", "content": hostile("text")},
    ]
    request = {"model": hostile("model"), hostile("member"): 1, "messages": messages, "tools": [tool]}
    again = {**request, "messages": [*messages, {"role": hostile("role"), "content": hostile("feedback")}]}
    text = (
        f'{hostile("text")}<tool_call>{{"name": "read", "arguments": {{"a": "{hostile("argument")[:9]}"}}}}</tool_call>'
    )
    chunk = {
        "choices": [{"index": 0, "delta": {"content": hostile("content"), "reasoning_content": hostile("thought")}}]
    }
    call = {
        "index": 0,
        "id": hostile("id"),
        "function": {"name": hostile("name"), "arguments": json.dumps(hostile("a"))},
    }
    called = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": hostile("finish")}]}
    answer = "".join(f"data: {json.dumps(one)}\n\n" for one in (chunk, called))
    trace = StoredTrace([UpstreamPiece(1, hostile("kind"), 3, 0)], [(1, 9)], [2])
    return {
        "request": json.dumps(request, ensure_ascii=False).encode(),
        "upstream_request.1": json.dumps(request).encode(),
        "upstream_request": json.dumps(again, ensure_ascii=False).encode(),
        "model": text.encode(),
        "reasoning": hostile("reasoning").encode(),
        "answer": answer.encode(),
        "trace": msgspec.json.encode(trace),
    }


async def fill(folder: Path, upstream: str) -> None:
    store = open_store("sqlite:toolglot.db", state_folder=folder, now=time.time)
    assert store is not None
    await store.open()
    texts = {name: hostile(name) for name in ("model", "upstream", "client_session", "client", "outcome")}
    await store.add_session(session("ses_1", owner=b"", created=time.time(), used=time.time(), **texts), [])
    rows = []
    for number in range(5):
        made = make_record(number, closed=number == 2)
        more = {"client": made.client, "model": made.model, "upstream": made.upstream, "outcome": made.outcome}
        ident = f"rec_{number:030x}"
        data, bodies = msgspec.json.encode(made), make_bodies(number)
        rows.append(record(ident, owner=b"", session="ses_1", time=time.time(), data=data, bodies=bodies, **more))
    await store.add_records(rows)
    failure = FailureRow(
        address=upstream,
        model=hostile("model"),
        kind=hostile("kind"),
        evidence=hostile("evidence"),
        learned=time.time(),
        expires=time.time() + 999,
    )
    await store.save_failure(failure)
    await store.close()


async def look(page: Page) -> None:
    await page.wait_for_timeout(200)
    assert await page.evaluate(LOOK) == []


async def open_turns(shown: ShownPage) -> None:
    page = shown.page
    await page.locator(".turn").first.wait_for()
    for turn in (1, 2, 4):
        await page.locator(".turn").nth(turn).click()
        for tab in TABS:
            await page.locator(f"[data-tab={tab}]").click()
            await look(page)
            if tab == "answer":
                await expect(page.locator(".columns")).to_contain_text("⟦U+202E⟧")


async def open_views(console: OpenedConsole, shown: ShownPage) -> None:
    page = shown.page
    for view, text in {
        "kpis": "Near misses",
        "routes": "learned: kind ⟦U+0007⟧",
        "routes/rollout": "conversation",
        "routes/settings": "reading.shell_cwd",
        "sessions/%E2%80%AE%3Cimg%3E": "There is nothing with that id",
        "playground": "Text of the model",
    }.items():
        await page.goto(f"{console.address}/console#/{view}")
        await expect(page.locator("main")).to_contain_text(text)
        await look(page)
    await page.get_by_label("Text of the model").fill(hostile("text") + '<tool_call>{"name": "\u202e"}</tool_call>')
    await page.get_by_role("textbox", name="Tools").fill(
        json.dumps([{"type": "function", "function": {"name": hostile("tool")}}])
    )
    for tab in await page.locator("[role=tab]").all():
        await tab.click()
        await look(page)


def test_every_field_is_inert(tmp_path: Path) -> None:
    async def test() -> None:
        settings: dict[str, Any] = {"shell_cwd": hostile("folder"), "mode": "auto"}
        async with opened_console(tmp_path, **settings) as console, opened_browser() as browser:
            upstream = (await console.get("/settings"))["upstreams"][0]["base_url"]
            await fill(tmp_path, upstream)
            async with shown_page(browser, f"{console.address}/console") as shown:
                await expect(shown.page.locator(".virtual-body .row").first).to_contain_text("⟦U+202E⟧")
                await look(shown.page)
                await shown.page.locator(".virtual-body .row a").first.click()
                await open_turns(shown)
                await open_views(console, shown)
                shown.problems = [one for one in shown.problems if "404 (Not Found)" not in one]
            file = tmp_path / "export.html"
            file.write_bytes((await console.call("/sessions/ses_1/export")).body)
            async with shown_page(browser, file.as_uri()) as shown:
                await open_turns(shown)

    asyncio.run(asyncio.wait_for(test(), 170))
