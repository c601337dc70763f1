"""Templates of marks: what they must not contain."""

from __future__ import annotations

import re

from support.fuzz_reader import list_templates

from toolglot.reading.plugins import known_dialects

NEEDS_BLANKS = re.compile(
    r" (?:\{(?:slash|junk|q|tick|number|words)\})*(?:\n|\{(?:bracket_)?attributes\}|\{before_(?:break|end)\})"
)


def test_no_mark_has_blanks_before_what_begins_with_blanks() -> None:
    """Blanks give nothing back, so a line break or a blank that must follow them would never be found."""
    templates = {template for dialect in known_dialects() for template in list_templates(dialect)}
    assert len(templates) > 500 and not list(filter(NEEDS_BLANKS.search, templates))
