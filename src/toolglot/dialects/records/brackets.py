"""Calls between marks in square brackets: LM Studio and others.

[TOOL_REQUEST]{"name": "get_weather", "arguments": {"city": "Oslo"}}[END_TOOL_REQUEST]
"""

from __future__ import annotations

from toolglot.dialects.codecs.cli_flags import CliFlags
from toolglot.dialects.codecs.json_envelope import OBJECT
from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.codecs.tagged_parameters import Parameter, TaggedParameters
from toolglot.dialects.spec import CallSyntax, Commitment, Dialect, Position, Wrap

# a notation that some models invent: arrows instead of colons, arguments as command-line flags
ARROWS = ('{{tool => "{name}", args =>', '{{tool => "{name}" args =>')

DIALECTS = (
    Dialect(
        "lmstudio",
        OBJECT,
        sample='[TOOL_REQUEST]{"name": "get_weather", "arguments": {"city": "Oslo"}}[END_TOOL_REQUEST]',
        wrap=(
            Wrap(("[TOOL_REQUEST]",), ("[END_TOOL_REQUEST]",)),
            Wrap(
                ("[TOOL_CALL]", "[TOOL CALL]", "[tool_call]"),
                (
                    "[/TOOL_CALL]",
                    "[END_TOOL_CALL]",
                    "[END TOOL CALL]",
                    "[TOOL CALL END]",
                    "[END_TOOL_REQUEST]",
                    "[/tool_call]",
                ),
            ),
        ),
        also=(
            CallSyntax(
                tuple(f"{arrows} {{before_quoted}}" for arrows in ARROWS), NamedCall(), ("}}",), Position.WRAPPED
            ),
            CallSyntax(ARROWS, NamedCall((CliFlags(),)), ("}}",), Position.WRAPPED),
        ),
    ),
    Dialect(
        "calling_tool_bracket",
        CallSyntax(("[Calling tool: {name}(",), NamedCall(), (")]", ") ]")),
        sample='[Calling tool: get_weather({"city": "Oslo"})]',
        also=(CallSyntax(("[Tool Call: {name}] Arguments:", "[Tool call: {name}] Arguments:"), NamedCall()),),
        commitment=Commitment.TENTATIVE,
    ),
    Dialect(
        "vcp",
        CallSyntax(
            ("tool_name:「始」{name}「末」,", "tool_name:「始」{name}「末」"),
            TaggedParameters((Parameter("{key}:「始」", ("「末」 ,", "「末」")),)),
            position=Position.WRAPPED,
        ),
        sample="<<<[TOOL_REQUEST]>>>\ntool_name:「始」get_weather「末」,\ncity:「始」Oslo「末」\n<<<[END_TOOL_REQUEST]>>>",
        wrap=(Wrap(("<<<[TOOL_REQUEST]>>>",), ("<<<[END_TOOL_REQUEST]>>>",)),),
    ),
)
