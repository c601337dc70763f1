"""Encode a conversation as one message of a Qwen web chat.

    {"stream": true, "version": "2.1", "incremental_output": true, "chat_id": "c-1", "parent_id": null, "model": "m",
     "messages": [{"role": "user", "content": "hello", "feature_config": {"output_schema": "phase", ...}, ...}]}

Strategy. The chat takes exactly one message of the user and no system message, so the text of that message holds all
that the chat does not know yet: the instructions, the earlier turns, and the latest message. A single message of the
user is sent as it is. Otherwise each part begins with a line such as ``===== turn 2: assistant =====``. The texts are
never changed; where one of them contains ``=====``, the lines of this message begin with ``=====1 ``, or the first
number that occurs in no text, so that no text can contain such a line.

``encode_request`` encodes a whole conversation, for a new chat. ``encode_tail`` encodes the messages behind the last
answer of a chat; a system message before them replaces the instructions that the chat has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Final

from toolglot.core.conversation import Conversation, Image, Message, Part, Text, ToolCall, ToolResult
from toolglot.core.errors import RequestError
from toolglot.core.json_numbers import encode
from toolglot.wires.protocol import write_error

NAME: Final = "qwen_web"
CARRIES: Final = {
    "model": "",
    "messages": "as one text; no images",
    "parallel_calls": "enforced on the response",
    "effort": "thinking on or off",
}
"""The fields of a request that this wire transports; see ``protocol.CARRIED_FIELDS``."""

CHAT_MODE: Final = "normal"
CHAT_TYPE: Final = "t2t"
PROTOCOL_VERSION: Final = "2.1"
BETWEEN: Final = "\n\n"
"""Separates texts that other wires send as several parts."""
BAR: Final = "====="
_NUMBERED_BAR: Final = re.compile(r"=====([0-9]{1,9}) ")
INSTRUCTIONS: Final = "instructions"
NEW_INSTRUCTIONS: Final = "new instructions and tools, which replace all earlier ones"
TRANSCRIPT: Final = "the conversation so far, oldest turn first; answer only the message at the end"

_Section = tuple[str, str]
"""The heading of a part of the message, and its text."""


def encode_request(conversation: Conversation, *, stream: bool, wants_usage: bool) -> bytes:
    """Encode a whole conversation, for a new chat. The upstream always streams.

    Raises: RequestError for images, for tools (the prompt has to describe them), and if there is no text.
    """
    return _encode(conversation, continued=False)


def encode_tail(conversation: Conversation, *, stream: bool, wants_usage: bool) -> bytes:
    """Encode the messages that follow the last answer of a chat. Raises: RequestError, as ``encode_request``."""
    return _encode(conversation, continued=True)


def _encode(conversation: Conversation, *, continued: bool) -> bytes:
    if conversation.tools:
        raise RequestError("This upstream takes no tools as such: describe them in the prompt (mode text).", "tools")
    content = _write_content(conversation.messages, continued)
    if not content.strip():
        raise RequestError("The conversation has no text, and this upstream needs some.", "messages")
    model, thinks = conversation.model, conversation.sampling.effort not in ("", "none")
    message: dict[str, Any] = {
        "id": None,
        "fid": "",
        "parentId": None,
        "parent_id": None,
        "childrenIds": [],
        "role": "user",
        "content": content,
        "user_action": "chat",
        "files": [],
        "timestamp": 0,
        "models": [model],
        "model": "",
        "chat_type": CHAT_TYPE,
        "sub_chat_type": CHAT_TYPE,
        "feature_config": {
            "thinking_enabled": thinks,
            "output_schema": "phase",
            "research_mode": "normal",
            "auto_thinking": False,
            "thinking_mode": "Thinking" if thinks else "Fast",
            "auto_search": False,
        },
        "extra": {"meta": {"subChatType": CHAT_TYPE}},
    }
    request = {
        "stream": True,
        "version": PROTOCOL_VERSION,
        "incremental_output": True,
        "chatId": "",
        "parentId": "",
        "chat_id": "",
        "chat_mode": CHAT_MODE,
        "model": model,
        "parent_id": None,
        "messages": [message],
        "timestamp": 0,
    }
    return encode(request)


def _write_content(messages: Sequence[Message], continued: bool) -> str:
    """The text of the message."""
    if len(messages) == 1 and messages[0].role == "user":
        return _write_parts(messages[0])
    sections = list(_list_sections(messages, continued))
    bar = _choose_bar(text for _, text in sections)
    return "\n".join(f"{bar} {heading} {BAR}\n{text}" for heading, text in sections)


def _list_sections(messages: Sequence[Message], continued: bool) -> Iterator[_Section]:
    turns = [(message.role, _write_parts(message)) for message in messages]
    leading = next((at for at, (role, _) in enumerate(turns) if role != "system"), len(turns))
    if leading:
        yield NEW_INSTRUCTIONS if continued else INSTRUCTIONS, BETWEEN.join(text for _, text in turns[:leading])
    turns = turns[leading:]
    if not turns:
        return
    if len(turns) > 1 and not continued:
        yield TRANSCRIPT, ""
    for number, (role, text) in enumerate(turns[:-1], 1):
        yield f"turn {number}: {role}", text
    role, text = turns[-1]
    yield _LAST.get(role, f"message of the {role}"), text


_LAST: Final = {"user": "message", "assistant": "turn to continue: assistant", "tool": "message: result"}


def _choose_bar(texts: Iterable[str]) -> str:
    """The beginning of the lines that separate parts, which begins no line of a text."""
    crossed = [text for text in texts if BAR in text]
    if not crossed:
        return BAR
    taken = {int(number) for text in crossed for number in _NUMBERED_BAR.findall(text)}
    return f"{BAR}{next(number for number in count(1) if number not in taken)}"


def _write_parts(message: Message) -> str:
    between = "" if message.role == "assistant" and not message.calls else BETWEEN
    return between.join(text for part in message.parts if (text := _write_part(part)) is not None)


def _write_part(part: Part) -> str | None:
    """A part as text; None for reasoning and for parts of other wires."""
    match part:
        case Text():
            return part.text
        case Image():
            raise RequestError("Images cannot be sent to this upstream: describe them in words.", "messages")
        case ToolCall():  # only if tool calling is off: otherwise the prompt has it as text
            return f"(called {part.name} with {part.arguments})"
        case ToolResult():
            return _write_result(write_error(part))
    return None


def _write_result(result: ToolResult) -> str:
    texts = (text for part in result.content if (text := _write_part(part)))
    return f"(result of {result.name or result.call_id or 'a call'})\n{BETWEEN.join(texts)}"
