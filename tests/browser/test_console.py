"""The console in a real browser: each view, live while a client works, login, read-only mode, hostile texts, many sessions.

Set ``TOOLGLOT_SCREENSHOTS`` to a folder to keep pictures of the views in both themes and at two widths.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import Page, expect
from support.browser import NARROW, THEMES, WIDE, ShownPage, check_page, opened_browser, shown_page
from support.console import OpenedConsole, opened_console
from support.gateway import READ
from support.postgres import free_port

from toolglot.config import KeyHash, make_key
from toolglot.store import open_store
from toolglot.store.interface import SessionRow

ADMIN_KEY = make_key(Random(1).randbytes)
MANY = 10_000
FIRST_PAINT_SECONDS = 1.0
HOSTILE = (
    '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg onload=window.hacked=1>'
    " javascript:window.hacked=1 </pre></script><!-- \x1b[31mred\x1b[0m \u202eabc\u202c\u2066x \ufeff '\"`${window.hacked=1}`"
)
REFUSED = "Failed to load resource: the server responded with a status of 503 (Service Unavailable)"
GOOD = '<tool_call>\n{"name": "read", "arguments": {"filePath": "package.json"}}\n</tool_call>'
REPAIRED = '<think>One more.</think>Next.\n<tool_call>\n{"name": "read", "arguments": {"filePath": "src/app.ts"}}\n'
DEFECTIVE = '<tool_call>\n{"name": "read", "arguments": {"path": 5}}\n</tool_call>'
CORRECTED = '<tool_call>\n{"name": "read", "arguments": {"filePath": "5"}}\n</tool_call>'


def make_upstream(answers: Sequence[str], pause: float = 0.0) -> web.Application:
    """A model that gives these answers one after the other, the last one again and again."""
    count = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal count
        text = answers[min(count, len(answers) - 1)]
        count += 1
        body = await request.json()
        usage = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
        if not body.get("stream"):
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return web.json_response({"id": "x", "choices": [choice], "usage": usage})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        size = max(7, len(text) // 200)
        for at in range(0, len(text), size):
            await send(response, {"choices": [{"index": 0, "delta": {"content": text[at : at + size]}}]})
            await asyncio.sleep(pause)
        await send(response, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage})
        await response.write(b"data: [DONE]\n\n")
        return response

    async def send(response: web.StreamResponse, chunk: Mapping[str, Any]) -> None:
        await response.write(b"data: " + json.dumps({"id": "x", **chunk}).encode() + b"\n\n")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    return app


async def work(console: OpenedConsole, turns: int = 3, **fields: Any) -> None:
    """A client that reads a file in each turn."""
    history: list[dict[str, Any]] = [{"role": "system", "content": "You are an agent. Today is Tuesday."}]
    for turn in range(turns):
        if turn == 2:
            history[0] = {"role": "system", "content": "You are an agent. Today is Wednesday."}
        answer = await console.ask(f"Step {turn}", history=history, **fields)
        assert answer.status == 200
        history.append({"role": "user", "content": f"Step {turn}"})
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "read", "arguments": '{"filePath":"a"}'}}
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": f"c{turn}", "content": '{"name": "shop"}\n' * 100})


async def keep_pictures(shown: ShownPage, name: str) -> None:
    folder = os.environ.get("TOOLGLOT_SCREENSHOTS")
    if not folder:
        return
    for theme in THEMES:
        await shown.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        for width, height in (WIDE, NARROW):
            await shown.page.set_viewport_size({"width": width, "height": height})
            await shown.page.wait_for_timeout(150)
            await shown.page.screenshot(path=Path(folder) / f"{name}-{theme}-{width}.png")


async def open_session(page: Page) -> None:
    await page.locator(".virtual-body .row a").first.click()
    await page.locator(".turn-detail [role=tab]").first.wait_for()


def run(test: Any) -> None:
    asyncio.run(asyncio.wait_for(test(), 170))


def test_a_session_appears_while_a_client_works(tmp_path: Path) -> None:
    async def test() -> None:
        app = make_upstream([GOOD, GOOD, "Done."], pause=0.15)
        async with opened_console(tmp_path, app=app) as console, opened_browser() as browser:
            async with shown_page(browser, f"{console.address}/console") as shown:
                page = shown.page
                await expect(page.get_by_text("No sessions yet")).to_be_visible()
                await check_page(shown)
                working = asyncio.create_task(work(console))
                await expect(page.locator(".open")).to_contain_text("in progress")
                row = page.locator(".virtual-body .row").first
                await expect(row).to_contain_text("demo-agent/1.2", timeout=15_000)
                await working
                await expect(row.locator(".num").first).to_have_text("3", timeout=15_000)
                await expect(page.locator(".open")).to_have_count(0)
                await open_session(page)
                await expect(page.locator(".turn")).to_have_count(3)
                again = asyncio.create_task(console.ask("Hello", history=[{"role": "user", "content": "Step 9"}]))
                await again
                await page.goto(f"{console.address}/console#/sessions")
                await expect(page.locator(".virtual-body .row")).to_have_count(2, timeout=15_000)
                await keep_pictures(shown, "sessions")

    run(test)


def test_a_page_catches_up_after_the_gateway_was_gone(tmp_path: Path) -> None:
    async def test() -> None:
        app = make_upstream(["One."])
        port = free_port()
        async with opened_browser() as browser, AsyncExitStack() as stack:
            console = await stack.enter_async_context(opened_console(tmp_path, app=app, port=port))
            await console.ask("Hello")
            await console.settle()
            context = await browser.new_context()
            page, other = await context.new_page(), await context.new_page()
            await page.goto(f"{console.address}/console")
            await open_session(page)
            await expect(page.locator(".live")).to_have_text("live")
            await other.goto(f"{console.address}/console")
            await expect(other.locator(".virtual-body .row")).to_have_count(1)
            await stack.aclose()
            await expect(page.locator(".live")).to_have_text("reconnecting")
            console = await stack.enter_async_context(opened_console(tmp_path, app=make_upstream(["Two."]), port=port))
            history = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "One."}]
            await console.ask("And?", history=history)
            await console.ask("Something else")
            await expect(page.locator(".turn")).to_have_count(2, timeout=15_000)
            await expect(other.locator(".virtual-body .row")).to_have_count(2, timeout=15_000)
            await context.close()

    run(test)


def test_a_session_in_detail(tmp_path: Path) -> None:
    async def test() -> None:
        app = make_upstream([GOOD, REPAIRED, DEFECTIVE, CORRECTED], pause=0.01)
        settings: dict[str, Any] = {"recovery_retries": 1, "recovery_hold_calls": "always"}
        async with opened_console(tmp_path, app=app, **settings) as console, opened_browser() as browser:
            await work(console)
            await console.settle()
            async with shown_page(browser, f"{console.address}/console") as shown:
                page = shown.page
                await open_session(page)
                await page.locator(".turn").nth(1).click()
                await expect(page.locator(".segments .span-repair").first).to_contain_text("read")
                await expect(page.locator(".segments .span-parameter")).to_have_text("src/app.ts")
                await expect(page.locator(".segments .span-reasoning")).to_have_text("One more.")
                await expect(page.locator(".event.call")).to_contain_text("read")
                await check_page(shown)
                await keep_pictures(shown, "answer")
                await page.locator(".turn").nth(2).click()
                for tab, wanted in {
                    "request": "Today is Wednesday",
                    "upstream": "<tool_call>",
                    "attempts": "is not a parameter",
                    "changes": "The first byte that differs",
                    "record": "request_id",
                }.items():
                    await page.locator(f"[data-tab={tab}]").click()
                    await expect(page.locator("[role=tabpanel]")).to_contain_text(wanted)
                    await check_page(shown)
                    await keep_pictures(shown, tab)
                await page.locator("[data-tab=changes]").click()
                await expect(page.locator(".note.warn")).to_contain_text("is broken at system, byte 3")
                await expect(page.locator(".diff-line.removed mark").first).to_have_text("Tu")
                await expect(page.locator(".diff-line.added mark").first).to_have_text("Wedn")
                await page.locator("[data-tab=attempts]").click()
                await expect(page.locator(".attempt")).to_have_count(2)

    run(test)


def test_replay(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            await console.ask()
            await console.settle()
            async with shown_page(browser, f"{console.address}/console") as shown:
                page = shown.page
                await open_session(page)
                await page.locator("[data-tab=replay]").click()
                await expect(page.locator(".snippets")).to_contain_text("curl -sN")
                await check_page(shown)
                await keep_pictures(shown, "replay")
                await page.get_by_label("Dialect").select_option("qwen3_coder")
                await page.get_by_role("button", name="Replay", exact=True).click()
                await expect(page.locator(".compare")).to_contain_text("qwen3_coder", timeout=20_000)
                await expect(page.locator(".turn.replayed")).to_have_count(1)
                await expect(page.locator(".compare tr.different")).not_to_have_count(0)
                await check_page(shown)
                await keep_pictures(shown, "comparison")

    run(test)


def test_an_export_is_a_file_or_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            await console.ask()
            session = (await console.only_session())["session"]["id"]
            async with shown_page(browser, f"{console.address}/console#/sessions/{session}") as shown:
                export = shown.page.get_by_role("link", name="Export HTML")
                async with shown.page.expect_download() as download:
                    await export.click()
                saved = await download.value
                assert saved.suggested_filename == f"{session}.html"
                assert b"</html>" in Path(await saved.path()).read_bytes()
                monkeypatch.setattr("toolglot.console.sessions.MAX_EXPORTS", 0)
                await export.click()
                await expect(shown.page.get_by_role("alert")).to_contain_text("try again in a moment")
                await check_page(shown)
                await keep_pictures(shown, "no-export")
                shown.problems.remove(REFUSED)

    run(test)


def test_login_and_read_only_mode(tmp_path: Path) -> None:
    async def test() -> None:
        settings: dict[str, Any] = {"admin_keys": str(KeyHash.of(ADMIN_KEY)), "console_read_only": "true"}
        async with opened_console(tmp_path, **settings) as console, opened_browser() as browser:
            assert (await console.ask(key=ADMIN_KEY)).status == 200
            async with shown_page(browser, f"{console.address}/console") as shown:
                page = shown.page
                await check_page(shown)
                await keep_pictures(shown, "login")
                await page.get_by_label("Client key").fill("sk-wrong")
                await page.get_by_role("button", name="Log in").click()
                await expect(page.get_by_role("alert")).to_contain_text("not a valid key")
                await page.get_by_label("Client key").fill(ADMIN_KEY)
                await page.keyboard.press("Enter")
                await open_session(page)
                await expect(page.locator("header .badge")).to_have_text("read-only")
                await expect(page.get_by_role("button", name="Delete")).to_have_count(0)
                await page.locator("[data-tab=replay]").click()
                await expect(page.get_by_role("button", name="Replay", exact=True)).to_be_disabled()
                assert await page.evaluate("document.cookie") == ""
                texts = await page.evaluate(
                    "JSON.stringify([{...localStorage}, {...sessionStorage}]) + document.documentElement.outerHTML"
                )
                assert ADMIN_KEY not in texts
                await page.reload()
                await open_again(page)
                await page.get_by_role("button", name="Log out").click()
                await expect(page.get_by_label("Client key")).to_be_visible()

    async def open_again(page: Page) -> None:
        await page.locator(".turn-detail [role=tab]").first.wait_for()

    run(test)


def test_hostile_texts_are_text(tmp_path: Path) -> None:
    """In the model's answer, the request, the model's name, the client's name; on the console and in an exported file."""

    async def test() -> None:
        app = make_upstream([HOSTILE + GOOD + HOSTILE])
        agent = "".join(one for one in HOSTILE if one.isascii() and one.isprintable()).replace(" ", "")
        async with opened_console(tmp_path, app=app) as console, opened_browser() as browser:
            headers = {"user-agent": agent}
            body = {
                "model": HOSTILE[:120],
                "stream": True,
                "messages": [{"role": "user", "content": HOSTILE}],
                "tools": [READ],
            }
            async with console.http.post(
                f"{console.address}/v1/chat/completions", json=body, headers=headers
            ) as response:
                await response.read()
            session = (await console.only_session())["session"]["id"]
            async with shown_page(browser, f"{console.address}/console") as shown:
                await open_session(shown.page)
                await walk(shown.page, ("request", "upstream", "attempts", "changes", "replay", "record", "answer"))
                with_names = await shown.page.locator(".segments").inner_text()
                assert "⟦U+202E⟧" in with_names and "⟦U+001B⟧" in with_names and "<script>" in with_names
            file = tmp_path / "export.html"
            file.write_bytes((await console.call(f"/sessions/{session}/export")).body)
            async with shown_page(browser, file.as_uri()) as shown:
                await shown.page.locator(".turn-detail [role=tab]").first.wait_for()
                await walk(shown.page, ("request", "upstream", "attempts", "changes", "replay", "record", "answer"))
                await expect(shown.page.locator(".segments")).to_contain_text("⟦U+202E⟧")
                await check_page(shown)
                await keep_pictures(shown, "export")

    async def walk(page: Page, tabs: Sequence[str]) -> None:
        for tab in tabs:
            await page.locator(f"[data-tab={tab}]").click()
            await page.wait_for_timeout(150)
            assert await page.evaluate("window.hacked") is None
            assert await page.locator("main img, main script, main svg").count() == 0

    run(test)


def test_a_text_of_ten_megabytes(tmp_path: Path) -> None:
    async def test() -> None:
        app = make_upstream([("<b>" + "x" * 97) * 100_000])
        async with opened_console(tmp_path, app=app, store_max_body_bytes="16 MiB") as console:
            assert (await console.ask("Write much", tools=[])).status == 200
            session = (await console.only_session())["session"]["id"]
            file = tmp_path / "export.html"
            file.write_bytes((await console.call(f"/sessions/{session}/export")).body)
            assert file.stat().st_size > 10_000_000
            async with opened_browser() as browser:
                for address in (f"{console.address}/console#/sessions/{session}", file.as_uri()):
                    async with shown_page(browser, address) as shown:
                        await expect(shown.page.get_by_text("Show more").first).to_be_visible(timeout=60_000)
                        assert await shown.page.evaluate("document.body.innerText.length") < 2_000_000
                        await shown.page.get_by_text("Show more").first.click()

    run(test)


@pytest.mark.parametrize("width", [WIDE[0], NARROW[0]])
def test_ten_thousand_sessions(tmp_path: Path, width: int) -> None:
    async def fill() -> None:
        store = open_store("sqlite:toolglot.db", state_folder=tmp_path, now=time.time)
        assert store is not None
        await store.open()
        for number in range(MANY):
            row = SessionRow(
                id=f"ses_{number:020x}", owner=b"", created=time.time() - number, used=time.time() - number,
                turns=number % 90 + 1, model=f"model-{number % 17}", upstream="default", client=f"agent-{number % 5}/1.0",
                outcome="ok" if number % 9 else "failed", calls=number % 40, repairs=number % 3, retries=number % 2,
                failed=0 if number % 9 else 1, input_tokens=number * 31, output_tokens=number * 7, seconds=number / 7,
            )  # fmt: skip
            await store.add_session(row, [])
        await store.close()

    async def test() -> None:
        await fill()
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            async with shown_page(browser, f"{console.address}/console", (width, 800)) as shown:
                page = shown.page
                await expect(page.locator(".total")).to_have_text("10.0k sessions")
                await expect(page.locator(".virtual-body .row").nth(5)).to_contain_text("model-5")
                assert await page.locator(".virtual-body .row").count() < 120
                await page.evaluate("document.querySelector('.virtual').scrollTop = 1e9")
                await expect(page.locator(".virtual-body .row").last).to_contain_text(f"model-{(MANY - 1) % 17}")
                await page.keyboard.press("/")
                await page.keyboard.type("model-16")
                await expect(page.locator(".total")).to_have_text("588 sessions")
                await expect(page.locator(".virtual-body .row").first).to_contain_text("model-16")
                await page.get_by_label("needs attention").check()
                await expect(page.locator(".total")).not_to_have_text("588 sessions")
                await check_page(shown)
                await keep_pictures(shown, "many")
                await page.set_viewport_size({"width": width, "height": 800})
                await page.locator(".virtual-body .row a").first.focus()
                await page.keyboard.press("ArrowDown")
                await page.keyboard.press("Enter")
                await expect(page.locator(".session-head")).to_be_visible()

    run(test)


def test_the_theme_can_be_switched(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            async with shown_page(browser, f"{console.address}/console") as shown:
                page = shown.page
                colours = []
                for _ in range(3):
                    colours.append(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
                    await page.get_by_role("button", name="Theme").click()
                assert colours[0] == colours[1] != colours[2]  # as the system has it, light, dark
                await page.get_by_role("button", name="Theme").click()
                await page.get_by_role("button", name="Theme").click()
                await page.reload()
                assert await page.evaluate("document.documentElement.dataset.theme") == "dark"

    run(test)
