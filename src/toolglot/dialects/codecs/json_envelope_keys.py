"""The keys of JSON objects that are calls, as models spell them."""

from __future__ import annotations

NAME_KEYS = frozenset(
    [
        "name",
        "tool",
        "tool_name",
        "toolName",
        "function",
        "function_name",
        "func",
        "action",
        "call",
        "recipient_name",
        "api_name",
        "functionName",
        "tool_to_call",
        "action_name",
    ]
)
SOLE_NAME_KEYS = frozenset(("plugin", "skill", "fn", "tool_id"))
"""Keys that hold a name only if it is a tool's and nothing else is said."""
LOOSE_NAME_KEYS = frozenset(("api", "command", "method", "operation", "tool_use")) | SOLE_NAME_KEYS
"""Keys that hold a name only if it is a tool's."""
ARGUMENT_KEYS = frozenset(
    [
        "arguments",
        "parameters",
        "params",
        "args",
        "input",
        "action_input",
        "tool_input",
        "toolInput",
        "tool_arguments",
        "tool_parameters",
        "tool_args",
        "function_arguments",
        "function_args",
        "function_parameters",
        "function_params",
        "tool_params",
        "api_params",
        "action_params",
        "action_parameters",
        "action_args",
        "kwargs",
        "inputs",
        "argument",
        "parameter",
        "param",
        "payload",
    ]
)
BODY_KEYS = frozenset(("data", "body", "options", "properties", "arguments_json"))
"""Keys that hold the arguments only if these fit the tool exactly, and nothing else stands beside its name."""

LEADING_KEYS = frozenset(
    [
        "id",
        "type",
        "tool_call_id",
        "call_id",
        "index",
        "role",
        "thought",
        "thoughts",
        "reasoning",
        "reason",
        "explanation",
        "analysis",
        "comment",
    ]
)
"""Keys that real envelopes put before the name."""

EXPLANATION_KEYS = frozenset(("reason", "explanation", "comment"))
"""Those of them that may just as well be arguments, where they stand behind it."""

RESULT_KEYS = frozenset(("result", "output", "exit_code", "stdout", "stderr", "ok", "error", "at", "duration_ms"))
"""Keys of a record of past calls."""

LIST_KEYS = frozenset(("tool_calls", "toolCalls", "tool_call", "function_call", "function_calls", "calls")) | {
    "tool_uses",
    "functionCall",
    "tool_request",
    "actions",
}

OFFER_KEYS = frozenset(("tools", "functions"))
"""Keys of lists that hold tools as often as calls of them: every element must have its arguments."""
ANY_LIST_KEYS = LIST_KEYS | OFFER_KEYS
