"""docs/usage-guide.md has all that it was asked for. ``make test-examples`` runs its programs."""

from __future__ import annotations

import re

from support.doc_blocks import ROOT

from toolglot.config.settings import USUAL_TOOLS

HEADINGS = (
    "## How it works",
    "### Request flow",
    "### Response flow",
    "## Configuration",
    "### Environment variables",
    "### Feature flags",
    "### A basic call",
    "### Streaming",
    "### The full cycle",
    "## Supported tools",
    "### Tool calls are not generated",
    "### Tool calls are not parsed",
    "### Tool results do not work",
    "## Best practices",
    "## Performance",
    "## Limitations",
    "## Migration",
    "## Further reading",
)


def test_the_usage_guide_is_complete() -> None:
    """Every heading that a usage guide of tool calling was asked for, and the tools that are known without being offered."""
    text = (ROOT / "docs/usage-guide.md").read_text("utf-8")
    assert [heading for heading in HEADINGS if f"\n{heading}\n" not in text] == []
    listed = text.partition("## Supported tools")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", listed.partition("- ")[2].partition("\n\n")[0])) == set(USUAL_TOOLS)
