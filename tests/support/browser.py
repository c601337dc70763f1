"""A real headless browser for the console, driven by Playwright, and what holds for every page of it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright

PROGRAM = "chromium"
OPTIONS = (
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE localhost,EXCLUDE 127.0.0.1",
)
WIDE, NARROW = (1280, 800), (380, 760)
THEMES = ("light", "dark")
SERIOUS = ("serious", "critical")


@asynccontextmanager
async def opened_browser() -> AsyncIterator[Browser]:
    found = shutil.which(PROGRAM)
    if not found:
        pytest.fail(f"{PROGRAM} is not installed: these tests need a real browser ('apt-get install {PROGRAM}')")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=list(OPTIONS))
        try:
            yield browser
        finally:
            await browser.close()


class ShownPage:
    """A page, and what went wrong on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        self.foreign: list[str] = []
        """Requests to other hosts."""
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("request", lambda request: self._check(request.url))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "401 (Unauthorized)" not in text and "403 (Forbidden)" not in text:
            self.problems.append(text)

    def _check(self, url: str) -> None:
        if not url.startswith(("http://127.0.0.1:", "http://localhost:", "data:", "blob:", "file:")):
            self.foreign.append(url)


@asynccontextmanager
async def shown_page(
    browser: Browser, address: str, size: tuple[int, int] = WIDE, **options: Any
) -> AsyncIterator[ShownPage]:
    """A page in a context of its own; at the end nothing may have gone wrong on it."""
    context = await browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
    try:
        shown = ShownPage(await context.new_page())
        await shown.page.goto(address)
        yield shown
        assert shown.problems == []
        assert shown.foreign == []
    finally:
        await context.close()


async def check_page(shown: ShownPage) -> None:
    """In both themes and at two widths: axe-core finds nothing serious, and nothing is wider than the window."""
    page = shown.page
    for theme in THEMES:
        await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        for width, height in (NARROW, WIDE):
            await page.set_viewport_size({"width": width, "height": height})
            await page.wait_for_timeout(100)
            results = await Axe().run(page)
            found = [
                f"{one['id']}: {node['html'][:200]}"
                for one in results.response["violations"]
                if one["impact"] in SERIOUS
                for node in one["nodes"]
            ]
            assert found == [], f"{theme}, {width} px"
            overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert overflow <= 0, f"{theme}, {width} px: {overflow} px too wide"
