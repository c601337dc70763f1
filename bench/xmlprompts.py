"""What an XML client costs before its request leaves: its prompt read, its history turned into calls and results.

    python bench/xmlprompts.py

Prompts are those of the tests, in the layouts and sizes of the real ones. *First* is a prompt that was never seen,
*again* the same prompt in another request: clients send it with every turn. Times are the best of several runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.xmlprompts import write_cline, write_compact, write_roo

from toolglot.clients.xml.prompt_parser import parse_prompt
from toolglot.clients.xml.session import detect_session, load_context
from toolglot.core.conversation import Conversation, Message, Text

PROMPTS = {"Roo, 38 KB": write_roo(), "Cline, 58 KB": write_cline(), "Cline compact, 6 KB": write_compact()}
TURNS = (10, 100)
CALL = "I write it.\n\n<write_to_file>\n<path>src/a{number}.ts</path>\n<content>\n{text}\n</content>\n</write_to_file>"
RESULT = "[write_to_file for 'src/a{number}.ts'] Result:\nsaved\n"
LINE = 'export const total = (items: number[]) => items.reduce((sum, one) => sum + one, 0) && "&lt;";\n'


def measure(run: Callable[[], object], before: Callable[[], object] = lambda: None, rounds: int = 15) -> float:
    """Milliseconds of the quickest run."""
    best = float("inf")
    for _ in range(rounds):
        before()
        start = perf_counter()
        run()
        best = min(best, perf_counter() - start)
    return best * 1000


def forget() -> None:
    load_context.cache_clear()
    parse_prompt.cache_clear()


def converse(prompt: str, turns: int) -> Conversation:
    """A conversation in which files of four kilobytes were written. Its prompt is a text of its own, as in a request."""
    messages = [Message("system", (Text(prompt[:1] + prompt[1:]),)), Message("user", (Text("Go"),))]
    for number in range(turns):
        text = CALL.format(number=number, text=LINE * 42)
        messages += [Message("assistant", (Text(text),)), Message("user", (Text(RESULT.format(number=number)),))]
    return Conversation("m", tuple(messages))


def meet_again(prompt: str) -> object:
    return detect_session(converse(prompt, 0))


def main() -> None:
    print("| prompt | first | again | " + " | ".join(f"{turns} turns as calls" for turns in TURNS) + " |")
    print("|---|---:|---:|" + "---:|" * len(TURNS))
    for name, prompt in PROMPTS.items():
        costs = [measure(partial(detect_session, converse(prompt, 0)), forget), measure(partial(meet_again, prompt))]
        for turns in TURNS:
            conversation = converse(prompt, turns)
            session = detect_session(conversation)
            assert session is not None
            costs.append(measure(partial(session.to_native, conversation)))
        print(f"| {name} | " + " | ".join(f"{cost:.2f} ms" for cost in costs) + " |")


if __name__ == "__main__":
    main()
