"""Details of the console in a real browser: typing while updates arrive, and what the differences of texts show."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect
from support.browser import NARROW, check_page, opened_browser, shown_page
from support.console import opened_console
from support.gateway import run

from toolglot.sim import SimOptions

DIFF = """async ([one, other]) => {
    const { diffLines, firstDifferentByte, foldDiff } = await import("console/lib/diff.js");
    return { rows: foldDiff(diffLines(one, other)), byte: firstDifferentByte(one, other) };
}"""
REBUILD = """async ([one, other]) => {
    const { diffLines } = await import("console/lib/diff.js");
    const lines = diffLines(one, other), without = (kind) => lines.filter((line) => line.kind !== kind).map((line) => line.text).join("\\n");
    return [without("added"), without("removed")];
}"""


def test_typing_in_the_search_while_updates_arrive(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            await console.ask("first")

            async def keep_asking() -> None:
                for number in range(1000):
                    await console.ask(f"Question {number}")
                    await asyncio.sleep(0.05)

            async with shown_page(browser, f"{console.address}/console") as shown:
                asking = asyncio.create_task(keep_asking())
                await expect(shown.page.locator(".virtual-body .row").first).to_be_visible()
                search = shown.page.get_by_label("Search sessions")
                await search.focus()
                await shown.page.keyboard.type("demo-agent is what I look for", delay=60)
                await expect(search).to_have_value("demo-agent is what I look for")
                await expect(shown.page.get_by_text("No session matches.")).to_be_visible()
                await search.fill("demo-agent")
                await expect(shown.page.locator(".virtual-body .row").first).to_be_visible()
                await shown.page.get_by_label("needs attention").check()
                await expect(search).to_have_value("demo-agent")
                asking.cancel()

    run(test)


def test_refused_requests_are_found(tmp_path: Path) -> None:
    """A client whose requests are not valid has no session, and still wants to know what is wrong."""

    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            await console.ask(messages="none")
            await console.settle()
            async with shown_page(browser, f"{console.address}/console") as shown:
                await shown.page.get_by_role("link", name="refused requests").last.click()
                await expect(shown.page.locator(".turn")).to_have_count(1)
                await expect(shown.page.locator(".event.failed")).to_contain_text("messages")
                await expect(shown.page.get_by_text("No model was asked.")).to_be_visible()
                await check_page(shown)
                for tab in await shown.page.get_by_role("tab").all():
                    await tab.click()
                    await expect(shown.page.locator("[role=tabpanel]")).not_to_contain_text("Loading")
                await check_page(shown)

    run(test)


def test_native_calls_of_attempts_stand_side_by_side(tmp_path: Path) -> None:
    async def test() -> None:
        options = SimOptions(defects=1, classes=("misspelt_tool",))
        settings: dict[str, Any] = {"mode": "native", "recovery_retries": 1, "recovery_hold_calls": "always"}
        async with opened_console(tmp_path, options, **settings) as console, opened_browser() as browser:
            await console.ask()
            await console.settle()
            async with shown_page(browser, f"{console.address}/console") as shown:
                page = shown.page
                await page.locator(".virtual-body .row a").first.click()
                await expect(page.locator(".native-call")).to_have_count(2)
                await check_page(shown)
                await page.locator("[data-tab=attempts]").click()
                for at in range(2):
                    await expect(page.locator(".attempt").nth(at).locator(".native-call")).to_contain_text(
                        "package.json"
                    )
                await check_page(shown)

    run(test)


def test_all_views_can_be_reached_on_a_narrow_screen(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            async with shown_page(browser, f"{console.address}/console", NARROW) as shown:
                await expect(shown.page.locator(".live.on")).to_be_attached()
                hidden = await shown.page.locator(".top nav").evaluate("nav => nav.scrollWidth - nav.clientWidth")
                assert hidden <= 0, "a link of the navigation is cut"

    run(test)


@pytest.mark.parametrize(
    ("one", "other", "byte", "marked"),
    [
        ("é", "è", 1, None),  # the two characters begin with the same byte
        ("a😀", "a😁", 4, None),
        ("a", "ab", 1, None),
        ("It is 10:00 and Tuesday here.", "It is 10:07 and Wednesday here.", 10, (["0", "Tu"], ["7", "Wedn"])),
        ('{"time": "10:00"}\n]', '{"time": "10:07"},\n{"new": 1}\n]', 14, (["0"], ["7", ","])),
    ],
)
def test_what_a_difference_marks(tmp_path: Path, one: str, other: str, byte: int, marked: Any) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            async with shown_page(browser, f"{console.address}/console") as shown:
                found = await shown.page.evaluate(DIFF, [one, other])
                assert found["byte"] == byte
                for kind, wanted in zip(("removed", "added"), marked or (), strict=False):
                    parts = [part for row in found["rows"] if row["kind"] == kind for part in row["parts"]]
                    assert [text for changed, text in parts if changed] == wanted

    run(test)


def test_large_and_random_differences(tmp_path: Path) -> None:
    """Both texts can be made of their difference, and texts that have little in common do not stop the page."""
    from random import Random

    random = Random(5)
    pairs = []
    for size in (1, 5, 40):
        for _ in range(30):
            pairs.append(["\n".join(random.choices("abcd", k=random.randrange(size + 1))) for _ in range(2)])
    large = ["\n".join(str(random.random()) for _ in range(9000)) for _ in range(2)]

    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            async with shown_page(browser, f"{console.address}/console") as shown:
                for pair in [*pairs, large]:
                    began = asyncio.get_running_loop().time()
                    assert await shown.page.evaluate(REBUILD, pair) == pair
                    assert asyncio.get_running_loop().time() - began < 5

    run(test)


def test_long_lines_show_what_is_around_a_change(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_browser() as browser:
            guide = "You are a careful helper. " * 100
            first = {"role": "system", "content": f"{guide}It is 10:00. {guide}"}
            question, answer = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
            await console.ask("Hi", history=[first])
            again = {"role": "system", "content": f"{guide}It is 10:07. {guide}"}
            await console.ask("And?", history=[again, question, answer])
            await console.settle()
            async with shown_page(browser, f"{console.address}/console") as shown:
                page = shown.page
                await page.locator(".virtual-body .row a").first.click()
                await expect(page.locator(".turn")).to_have_count(2)
                await page.locator("[data-tab=changes]").click()
                await page.get_by_role("button", name="Client requests").click()
                await expect(page.locator(".diff-line.added mark").first).to_have_text("7")
                line = page.locator(".diff-line.removed").first
                await expect(line).to_contain_text("equal characters")
                assert len(await line.inner_text()) < 700
                await line.get_by_role("button").first.click()
                assert len(await line.inner_text()) > 2600

    run(test)
