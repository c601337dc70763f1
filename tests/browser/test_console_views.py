"""The views KPIs and Playground in a real browser."""

from __future__ import annotations

from pathlib import Path

from support.browser import check_page, opened_browser, shown_page
from support.console import opened_console
from support.gateway import run

HOSTILE = '<img src=x onerror="document.title=1">\u202e'


def test_kpis_are_shown_with_plots(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            for _ in range(4):
                await console.ask()
            await console.ask(messages="none")
            await console.ask(model=HOSTILE)
            async with shown_page(browser, f"{console.address}/console#/kpis") as shown:
                await shown.page.wait_for_selector(".plot canvas")
                assert await shown.page.locator(".plot").count() == 8
                assert await shown.page.locator(".plot canvas").count() >= 4
                await shown.page.get_by_role("button", name="1 h").click()
                await shown.page.wait_for_selector("text=6 requests")
                await shown.page.get_by_role("button", name="sim", exact=True).click()
                await shown.page.wait_for_selector("text=4 requests")
                chosen = shown.page.get_by_label("Model and dialect")
                assert "sim · hermes" in await chosen.locator("option:checked").inner_text()
                await chosen.select_option("all models and dialects")
                await shown.page.wait_for_selector("text=6 requests")
                table = shown.page.locator("table.measures").last
                assert "sim" in await table.inner_text()
                assert await shown.page.locator("img[src=x]").count() == 0
                await check_page(shown)

    run(test)


def test_the_playground_reads_and_shares_by_link(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            address = f"{console.address}/console#/playground"
            async with shown_page(browser, address, permissions=["clipboard-read", "clipboard-write"]) as shown:
                page = shown.page
                await page.wait_for_selector(".span-parameter >> text=src/app.py")
                text = page.get_by_label("Text of the model")
                await text.fill(f'{HOSTILE}<tool_call>{{"name": "read_file", "arguments": {{"file": 1}}}}</tool_call>')
                await page.get_by_role("tab", name="Calls").click()
                await page.wait_for_selector("text=What the model is told")
                assert await page.locator("img[src=x]").count() == 0
                await check_page(shown)
                await text.fill('<tool_call>{"name": "read_file", "arguments": {"path": "ü.py"}}</tool_call>')
                await page.get_by_role("slider").fill("0")
                await page.wait_for_selector("text=1 character")
                await page.get_by_role("tab", name="anthropic_messages").click()
                await page.wait_for_selector("text=tool_use")
                await page.get_by_role("button", name="Copy link").click()
                link = await page.evaluate("navigator.clipboard.readText()")
                assert link.startswith(f"{console.address}/console#/playground/")
            async with shown_page(browser, link) as shared:
                await shared.page.wait_for_selector(".span-parameter >> text=ü.py")
                assert await shared.page.get_by_label("Text of the model").input_value() == (
                    '<tool_call>{"name": "read_file", "arguments": {"path": "ü.py"}}</tool_call>'
                )

    run(test)


def test_the_rollout_is_moved_and_a_model_pinned(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, mode="auto") as console, opened_browser() as browser:
            for number in range(6):
                await console.ask(f"Question {number}")
            async with shown_page(browser, f"{console.address}/console#/routes") as shown:
                page = shown.page
                await page.get_by_role("button", name="Pin text").click()
                await page.wait_for_selector("text=pinned")
                await check_page(shown)
                await page.get_by_role("tab", name="Rollout").click()
                slider = page.get_by_label("reading: share of conversations")
                await slider.fill("40")
                await page.wait_for_selector("text=6 conversations in the last day")
                await page.get_by_role("button", name="Apply canary-40").click()
                await page.wait_for_selector(".badge >> text=canary-40")
                await check_page(shown)
                await page.get_by_role("tab", name="Settings").click()
                await page.get_by_label("Filter settings").fill("server.port")
                await page.wait_for_selector("text=1 setting")
                await check_page(shown)

    run(test)
