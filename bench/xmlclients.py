"""What XML clients are given: calls read back by the ports of their parsers, beside the rule that escapes everything.

For each client, model id and tool, calls are made from hostile pieces (entities, tags, fences, whitespace, unicode), the
same ones for both sides. One side is rendered as toolglot does it. The other one follows the generators of the "Roo-Cline
Response Transformer Specification": every value is escaped, whatever the client does with it. Then the client's own
reading is compared with what the model wrote.

    python bench/xmlclients.py [--cases N]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.xmlcases import Case, make_case

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.call_renderer import render_call
from toolglot.clients.xml.profile import ValueKind, XmlCallBlock
from toolglot.core.lenient_json import dump, parse

OTHER, CLAUDE, GEMINI = "qwen3-coder-plus", "claude-sonnet-4", "gemini-2.5-pro"
SHOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "roo-3.29": {
        "read_file args": (OTHER,),
        "list_files path": (OTHER,),
        "search_files regex": (OTHER,),
        "execute_command command": (OTHER,),
        "write_to_file content": (OTHER, CLAUDE),
        "apply_diff diff": (OTHER, CLAUDE),
        "insert_content content": (OTHER,),
        "use_mcp_tool arguments": (OTHER,),
        "ask_followup_question question": (OTHER,),
        "ask_followup_question follow_up": (OTHER,),
        "attempt_completion result": (OTHER,),
    },
    "cline-legacy": {
        "read_file path": (OTHER,),
        "search_files regex": (OTHER,),
        "execute_command command": (OTHER, GEMINI),
        "write_to_file content": (OTHER, CLAUDE),
        "replace_in_file diff": (OTHER, CLAUDE),
        "use_mcp_tool arguments": (OTHER,),
        "ask_followup_question options": (OTHER,),
        "attempt_completion result": (OTHER,),
    },
}
"""By client: the tool and the parameter that has hostile values, and the model ids."""

_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&apos;"))


def escape(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    for character, entity in _ESCAPES:
        text = text.replace(character, entity)
    return text


def escape_everything(case: Case) -> str:
    """The call as the specification's generators write it."""
    lines = [f"<{case.tool.name}>"]
    for parameter in case.tool.parameters:
        if parameter.name not in case.expected:
            continue
        value, name = case.expected[parameter.name], parameter.name
        if parameter.kind is ValueKind.FILES:
            inside = "".join(
                f"<file><path>{escape(file['path'])}</path>"
                + "".join(f"<line_range>{lines_}</line_range>" for lines_ in file.get("line_range", ()))
                + "</file>"
                for file in value["file"]
            )
        elif parameter.kind is ValueKind.SUGGESTIONS:
            inside = "".join(f"<suggest>{escape(answer['text'])}</suggest>" for answer in value)
        elif parameter.kind is ValueKind.BLOCK:
            inside = f"\n{escape(value)}\n"
        else:
            inside = escape(value)
        lines.append(f"<{name}>{inside}</{name}>")
    return "\n".join([*lines, f"</{case.tool.name}>"])


def is_exact(case: Case, text: str) -> bool:
    """Whether the client finds the one call with the values that the model wrote."""
    blocks = case.client.read(text, case.model)
    if len(blocks) != 1 or not isinstance(blocks[0], XmlCallBlock) or blocks[0].complaint:
        return False
    params = blocks[0].params
    return all(same(params.get(name), value) for name, value in case.expected.items() if value not in ("", []))


def same(got: Any, value: Any) -> bool:
    if isinstance(value, str):
        return str(got) == value
    return got is not None and dump(got) == dump(parse(json.dumps(value)).value)


def judge(case: Case) -> str:
    rendered = render_call(case.client, case.model, case.tool.name, case.arguments)
    if not rendered.text:
        return "refused"
    if is_exact(case, rendered.text):
        return "exact"
    return "recorded" if rendered.notes else "corrupted"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--cases", type=int, default=1000)
    count = options.parse_args().cases
    print(
        "| client | tool, parameter | model id | escape everything: exact | toolglot: exact | difference recorded | refused | corrupted |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|")
    total: Counter[str] = Counter()
    start = process_time()
    for name, tools in SHOWN.items():
        client = all_clients()[name]
        for place, models in tools.items():
            tool, _, parameter = place.partition(" ")
            for model in models:
                random = Random(f"{name} {place}")
                cases = [make_case(random, client, model, client.tools[tool], parameter) for _ in range(count)]
                seen = Counter(map(judge, cases))
                theirs = sum(is_exact(case, escape_everything(case)) for case in cases)
                shares = (f"{100 * seen[kind] / count:.0f} %" for kind in ("exact", "recorded", "refused"))
                print(
                    f"| {name} | {place} | {model} | {100 * theirs / count:.0f} % | {' | '.join(shares)} | {seen['corrupted']} |"
                )
                total += seen
    print(
        f"\n{total.total():,} calls in {process_time() - start:.0f} s: "
        + ", ".join(f"{total[k]:,} {k}" for k in sorted(total))
    )


if __name__ == "__main__":
    main()
