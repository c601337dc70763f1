"""The docs agree with the source: generated parts, links, and the modules that they name.

``pytest --update-samples tests/project/test_docs.py`` writes the generated parts again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.conformance import conformance_table
from support.rows import in_one_test
from support.source_tables import (
    cache_table,
    client_table,
    error_pages,
    imported_packages,
    layers,
    package_graph,
    start_table,
)

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/toolglot"
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "bench/README.md"])
HISTORY = ROOT / "CHANGELOG.md"
TO_CREATE = ("arrows.py", "arrow_call/one.md")
"""Files that the how-tos of CONTRIBUTING.md create."""
OVERVIEW_LINES = 110

GENERATED = {
    "packages": ("docs/ARCHITECTURE.md", package_graph),
    "caches": ("docs/state.md", cache_table),
    "clients": ("docs/setup.md", client_table),
    "started": ("docs/setup.md", start_table),
    "errors": ("docs/errors.md", error_pages),
    "conformance": ("docs/conformance.md", lambda root: conformance_table()),
}

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
FENCE = re.compile(r"^(```+).*?^\1", re.DOTALL | re.MULTILINE)
TARGET = re.compile(r"^([a-z][a-z-]*):.*?(?:## (.+))?$", re.MULTILINE)
FILE = re.compile(r"`((?:src|tests|docs|bench|examples)/[\w./-]+|[\w./-]+/[\w-]+\.(?:py|toml|md))`")


@pytest.mark.parametrize("name", GENERATED)
def test_generated_parts_are_up_to_date(name: str, request: pytest.FixtureRequest) -> None:
    page, generate = GENERATED[name]
    text = (ROOT / page).read_text("utf-8")
    marked = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    generated = generate(ROOT)
    if request.config.getoption("--update-samples"):
        text = marked.sub(lambda _: generated, text, count=1)
        (ROOT / page).write_text(text, "utf-8")
    found = marked.search(text)
    assert found is not None and found.group() == generated, f"run pytest --update-samples {Path(__file__).name}"


def test_the_contract_covers_every_package() -> None:
    assert sorted(name for row in layers(ROOT) for name in row) == sorted(imported_packages(SOURCE))


def test_the_overview_stays_short() -> None:
    assert len((ROOT / "docs/ARCHITECTURE.md").read_text("utf-8").splitlines()) <= OVERVIEW_LINES


def test_every_page_is_reachable_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            waiting += [target for target, _ in links(page) if target.suffix == ".md" and target.is_file()]
    assert set((ROOT / "docs").rglob("*.md")) - seen == set()


def links(page: Path) -> Iterator[tuple[Path, str]]:
    for found in LINK.finditer(FENCE.sub("", page.read_text("utf-8"))):
        yield (page.parent / found[1]).resolve() if found[1] else page, found[2] or ""


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@in_one_test("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = [
        f"{target.name}#{anchor}"
        for target, anchor in links(page)
        if not target.exists() or (anchor and anchor not in anchors(target))
    ]
    assert broken == []


@in_one_test("page", [page for page in PAGES if page != HISTORY], ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    names = {name for name in FILE.findall(page.read_text("utf-8")) if not name.endswith(TO_CREATE)}
    assert [name for name in sorted(names) if not (ROOT / name).exists() and not (SOURCE / name).exists()] == []


def test_targets_are_explained_and_listed() -> None:
    """Every target of the Makefile has a line in ``make help``, and those that test or measure stand in the guide."""
    makefile, guide = (ROOT / "Makefile").read_text("utf-8"), (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    targets = dict(TARGET.findall(makefile))
    assert [name for name, meaning in targets.items() if not meaning] == []
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None and set(phony[1].split()) == set(targets)
    listed = set(re.findall(r"`make ([a-z-]+)`", guide.partition("## The test ladder")[2].partition("\nTests are")[0]))
    assert listed == {name for name in targets if name.startswith(("test", "bench", "fuzz", "coverage"))}


@in_one_test("page", [page for page in PAGES if page != HISTORY], ids=lambda page: page.name)
def test_targets_that_are_named_exist(page: Path) -> None:
    targets = dict(TARGET.findall((ROOT / "Makefile").read_text("utf-8")))
    named = re.findall(r"(?:`| {4})make (?:-s )?([a-z][a-z-]*(?: bench-[a-z]+)*)", page.read_text("utf-8"))
    assert {name for names in named for name in names.split()} - set(targets) == set()
