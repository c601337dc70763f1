"""Words that announce an example, and how long it takes to see that there are none."""

from __future__ import annotations

from time import process_time

import pytest

from toolglot.announcements import TAIL, announces_example

ANNOUNCED: dict[str, tuple[bool, bool]] = {
    "For example:": (True, True),
    "For example, I would call it, like so: \n\n``` ": (True, True),
    "for example\n:": (False, False),
    "forexample:": (False, False),
    "You could write this: ": (True, True),
    "You could write, ": (False, False),
    "with a tool, e.g. ": (True, True),
    "with a tool, E.G.:\n": (True, True),
    "with a tool, e.g": (False, False),
    "Usage\n\n": (True, True),
    "text\n## **Examples** \n": (True, True),
    "my usage:": (False, False),
    "\n示例：": (True, True),
    "the syntax of it is:\n": (True, True),
    "the syntax of it is :": (False, False),
    "it looks like this: ": (False, True),
    "an example of it :\n": (False, True),
    "an example of it\n:": (False, False),
    "比如这个：": (False, True),
    "": (False, False),
    "\n\n": (False, False),
    "I will read it.\n": (False, False),
}


@pytest.mark.parametrize("text", ANNOUNCED)
def test_examples_are_announced(text: str) -> None:
    assert (announces_example(text, True), announces_example(text, False)) == ANNOUNCED[text]


@pytest.mark.parametrize("unit", ["\n", "example\n", " \n x", "for example ", "é:", "looks like: ", "-", "\n例 "])
def test_a_look_takes_no_time(unit: str) -> None:
    text = unit * TAIL
    begun = process_time()
    for _ in range(200):
        announces_example(text, False)
    assert process_time() - begun < 0.2
