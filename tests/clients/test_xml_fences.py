"""Calls in the client's own XML inside a code fence."""

from __future__ import annotations

from random import Random

from support.rows import in_one_test

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.fenced_calls import FencedCalls

CALL = "<list_files>\n<path>.</path>\n</list_files>"
FILE = "<write_to_file>\n<path>a.md</path>\n<content>\n```\nx\n```\n</content>\n</write_to_file>"

MEANT = {
    "xml": (f"Now:\n```xml\n{CALL}\n```", f"Now:\n{CALL}"),
    "no language": (f"```\n{CALL}\n```\n", CALL),
    "capitals": (f"Now:\n\n```XML\n{CALL}\n```\n\n", f"Now:\n\n{CALL}"),
    "indented": (f"Now:\n  ```xml\n{CALL}\n  ```", f"Now:\n  {CALL}"),
    "fences inside": (f"Now:\n```xml\n{FILE}\n```", f"Now:\n{FILE}"),
    "after one that is shown": (f"```xml\n{CALL}\n```\nor\n```xml\n{CALL}\n```", f"```xml\n{CALL}\n```\nor\n{CALL}"),
    "after another fence": (f"```js\nx\n```\nNow:\n```xml\n{CALL}\n```", f"```js\nx\n```\nNow:\n{CALL}"),
}
SHOWN = {
    "words behind": f"So:\n```xml\n{CALL}\n```\nThat is how.",
    "two calls shown": f"```xml\n{CALL}\n```\nor\n```xml\n{CALL}\n``` then",
    "not at the beginning": f"```xml\n<!-- so -->\n{CALL}\n```",
    "another language": f"```python\n{CALL}\n```",
    "in a line": f"a ```xml\n{CALL}\n```",
    "never closed": f"```xml\n{CALL}\n",
    "cut": "Now:\n```xml\n<list_files>\n<path>",
    "no call": "```xml\n<note>\n</note>\n```",
    "no fence": CALL,
    "backticks": "`` ` ``` ```` \n`\n``\n```\n```x",
    "nothing": "",
}


def unfence(pieces: list[str]) -> str:
    unfencing = FencedCalls(all_clients()["roo-3.36"])
    return "".join([*map(unfencing.feed, pieces), unfencing.close(cut=False)])


def cut(text: str, random: Random) -> list[str]:
    places = sorted(random.choices(range(len(text) + 1), k=random.randrange(8)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


@in_one_test("name", [*MEANT, *SHOWN])
def test_however_it_is_cut(name: str) -> None:
    text, expected = MEANT[name] if name in MEANT else (SHOWN[name], SHOWN[name])
    random = Random(name)
    assert unfence([text]) == expected
    assert unfence(list(text)) == expected
    for _ in range(50):
        assert unfence(cut(text, random)) == expected


def test_text_streams() -> None:
    unfencing = FencedCalls(all_clients()["roo-3.36"])
    assert unfencing.feed("Hello `x` and") == "Hello `x` and"
    assert unfencing.feed("\n``") == "\n"
    assert unfencing.feed("`js\nx") == "```js\nx"
    assert unfencing.feed("\n```xml\n<list_files>") == "\n"
    assert unfencing.feed("</list_files>\n```\n") == ""
    assert unfencing.feed("So.").endswith("So.")
