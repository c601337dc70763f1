"""Keys of JSON envelopes, in the spellings that models use."""

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
"""Keys that hold a tool name only if the tool is known and the answer holds nothing else."""
LOOSE_NAME_KEYS = frozenset(("api", "command", "method", "operation", "tool_use")) | SOLE_NAME_KEYS
"""Keys that hold a tool name only if the tool is known."""
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
"""Keys that hold the arguments only if they fit the tool exactly and nothing else is next to the name."""

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
"""Leading keys that may be arguments when they follow the name."""

RESULT_KEYS = frozenset(("result", "output", "exit_code", "stdout", "stderr", "ok", "error", "at", "duration_ms"))
"""Keys of a log entry about past calls."""

LIST_KEYS = frozenset(("tool_calls", "toolCalls", "tool_call", "function_call", "function_calls", "calls")) | {
    "tool_uses",
    "functionCall",
    "tool_request",
    "actions",
}

OFFER_KEYS = frozenset(("tools", "functions"))
"""Keys of lists that hold tool definitions as often as calls: every element must have arguments."""
ANY_LIST_KEYS = LIST_KEYS | OFFER_KEYS
