"""The pages in docs/reference agree with the source.

``pytest --update-samples tests/project/test_reference.py`` writes their generated parts again.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import reference_pages

FOLDER = Path(__file__).resolve().parents[2] / "docs/reference"
GENERATED = {
    "cli": reference_pages.command_reference,
    "dialects": reference_pages.dialect_reference,
    "events": reference_pages.event_reference,
    "metrics": reference_pages.metric_reference,
    "wires": reference_pages.wire_reference,
}
PART = re.compile(r"(?<=<!-- generated -->\n).*(?=<!-- end -->)", re.DOTALL)


@pytest.mark.parametrize("name", GENERATED)
def test_the_page_is_what_the_source_says(name: str, request: pytest.FixtureRequest) -> None:
    page = FOLDER / f"{name}.md"
    before = page.read_text("utf-8")
    after, count = PART.subn(lambda _: GENERATED[name](), before)
    assert count == 1
    if request.config.getoption("--update-samples"):
        page.write_text(after, "utf-8")
        return
    assert before == after, f"run pytest --update-samples tests/project/{Path(__file__).name}"


def test_every_page_is_generated() -> None:
    assert {page.stem for page in FOLDER.glob("*.md")} == set(GENERATED)
