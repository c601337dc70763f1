"""What the simulated model answers to the messages that it sees."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolglot.sim.answer import Answer
from toolglot.sim.prompt_parsers import find_tools
from toolglot.sim.prompt_reading import detect_choice, split_result
from toolglot.sim.qwen_web.chats import SeenMessage
from toolglot.sim.request import SimRequest

TURN_HEADING = re.compile(
    r"^\W{0,4}(?i:user|human|question|latest (?:message|turn))(?i: (?:message|turn|asks|request))?\W{0,4}$"
    r"|^\W{0,4}(?:User|Human):",
    re.M,
)
"""What stands before a turn of the user in a message that holds a whole conversation."""


def echo(messages: Sequence[SeenMessage]) -> Answer:
    """An answer that repeats all messages that the model sees."""
    return Answer("\n\n".join(f"{role}: {text}" for role, text in messages))


def read_context(messages: Sequence[SeenMessage], model: str) -> SimRequest:
    """The request as the rules of the simulated model understand it.

    Tools and their dialect come from the latest message that describes tools. If that is the last message, its question
    is what follows the last heading of a user's turn, or else its last paragraph.
    """
    latest = messages[-1].text
    prompts = [text for role, text in reversed(messages) if role == "user" and find_tools(text)]
    prompt = prompts[0] if prompts else ""
    is_reply = any(role == "assistant" for role, _ in messages)
    question, result = split_result(latest) if is_reply else (latest, None)
    if prompt == latest or question == prompt:
        question, result = split_result(_last_turn(question))
    return SimRequest(
        model=model,
        question=question,
        tools=find_tools(prompt) if prompt else (),
        native=False,
        prompt=prompt,
        result=None if question else result,
        choice=detect_choice(prompt),
        stream=True,
    )


def _last_turn(text: str) -> str:
    headings = list(TURN_HEADING.finditer(text))
    after = text[headings[-1].end() :].strip() if headings else ""
    if after and find_tools(after):
        after = ""  # a heading in the instructions
    return after or text.rstrip().rpartition("\n\n")[2].strip()
