"""The documentation site: it builds without a warning, and a broken link, anchor or table stops the build."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("*.md", "docs/**/*", "bench/README.md", "examples/**/*", "mkdocs.yml")
BROKEN_LINKS = {
    "[setup](setup-of-clients.md)": "page does not exist",
    "[words](glossary.md#no-such-words)": "anchor does not exist",
    "[here](#nowhere-at-all)": "#nowhere-at-all",
}
BROKEN_PAGES = {
    "![path](no-such-picture.svg)": "no-such-picture.svg leads nowhere",
    "![path](https://example.test/a.svg)": "loads https://example.test/a.svg",
    "<!-- x -->\n| a | b |\n| c | d |": "Markdown that was not rendered: '| a | b |",
    '<a href="no-such-file.txt">x</a>': "no-such-file.txt leads nowhere",
    '<a href="glossary.html#no-words">x</a>': "glossary.html#no-words has no such anchor",
}
"""What is added to a page, and what the build says. Links in Markdown are checked first, by Zensical."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for pattern in PAGES:
        for path in ROOT.glob(pattern):
            if path.is_file() and "node_modules" not in path.parts:
                (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, tmp_path / path.relative_to(ROOT))
    return tmp_path


def build(root: Path) -> tuple[int, str]:
    command = [sys.executable, str(root / "docs/build_site.py")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def test_the_site_builds_without_a_warning(copy: Path) -> None:
    code, output = build(copy)
    assert (code, "No issues found" in output, ", 0 problems" in output) == (0, True, True), output
    for page in (ROOT / "docs").rglob("*.md"):
        assert (copy / "build/site" / page.relative_to(ROOT).with_suffix(".html")).is_file()


@pytest.mark.parametrize("broken", [BROKEN_LINKS, BROKEN_PAGES], ids=["links", "pages"])
def test_what_is_broken_stops_the_build(broken: dict[str, str], copy: Path) -> None:
    with (copy / "docs/delivery.md").open("a", encoding="utf-8") as page:
        page.writelines(f"\n{text}\n" for text in broken)
    code, output = build(copy)
    assert code == 1
    assert [message for message in broken.values() if message not in output] == [], output


def test_the_menu_has_every_page() -> None:
    def pages(entries: object) -> list[str]:
        if isinstance(entries, str):
            return [entries]
        values = entries if isinstance(entries, list) else list(entries.values()) if isinstance(entries, dict) else []
        return [page for value in values for page in pages(value)]

    yaml.SafeLoader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)
    listed = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"])
    assert sorted(listed) == sorted(set(listed))
    written = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    assert written - set(listed) == set(), "list these pages under 'nav' of mkdocs.yml"
    assert [name for name in listed if not (ROOT / name).is_file()] == []
