"""An alphabet rich in marks, for the properties and the fuzz target: pieces of every sample, names, quotes, braces."""

from __future__ import annotations

import os
import re
from functools import cache

from support.samples import load_samples, load_tools

SCALE = int(os.environ.get("SCALE", "1"))
"""How many times more examples and rounds than usual."""

MARK = re.compile(
    r"</?[^<>\s]{1,40}>?|<[^<>\n]{1,60}>|\[/?[A-Z_]{3,}\]|`{3,}\w*|[\w.✿]+[:(]|[{}\[\]\"',:=;|]+|\\[\"n\\u]|\S+"
)
LOOSE = [
    *(
        "<",
        ">",
        "</",
        "/>",
        "<|",
        "|>",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "'",
        '"',
        '"""',
        "\\",
        "\\\\",
        "`",
        "``",
        "```",
        "````",
    ),
    *(
        "\n",
        "\r\n",
        "\n\n",
        " ",
        "\t",
        "\x00",
        "\u2028",
        "\ud800",
        "🚀",
        "é",
        ":",
        ",",
        "=",
        "&lt;",
        "&amp;",
        "<![CDATA[",
        "]]>",
    ),
    *(
        "<think>",
        "</think>",
        "<thinking>",
        "</thinking>",
        "<|im_end|>",
        "<tool_response>",
        "</tool_response>",
        "Observation:",
    ),
    *(
        "null",
        "true",
        "1",
        "-0.5e3",
        "1e999",
        '{"name": "',
        '"arguments": ',
        "```json\n",
        "```bash\n",
        "<div>",
        "<!-- ",
        " -->",
    ),
]


@cache
def fragments() -> tuple[str, ...]:
    """Marks and words of every sample and tool, each once, in a fixed order."""
    found = set(LOOSE)
    for sample in load_samples():
        found.update(MARK.findall(sample.text))
    for tool in load_tools("house"):
        function = tool["function"]
        found.update((function["name"], f"<{function['name']}>", f"</{function['name']}>", f'"{function["name"]}"'))
        found.update(function["parameters"]["properties"])
    return tuple(sorted(found))


@cache
def snippets() -> tuple[str, ...]:
    """Longer pieces: the lines and the halves of every sample."""
    found: set[str] = set()
    for sample in load_samples():
        found.update(sample.text.splitlines(keepends=True))
        found.update((sample.text[: len(sample.text) // 2], sample.text[len(sample.text) // 2 :], sample.text))
    return tuple(sorted(found))
