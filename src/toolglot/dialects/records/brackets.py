"""Marks in square brackets.

[TOOL_REQUEST]{"name": "get_weather", "arguments": {"city": "Oslo"}}[END_TOOL_REQUEST]
"""

from __future__ import annotations

from toolglot.dialects.codecs.cli_flags import Flags
from toolglot.dialects.codecs.json_envelope import OBJECT
from toolglot.dialects.codecs.named_call import Named
from toolglot.dialects.codecs.tagged_parameters import Markup, Parameter
from toolglot.dialects.spec import Call, Commitment, Dialect, Place, Wrap

# an invented notation that replaces the colon by an arrow and writes arguments like command-line flags
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
            Call(tuple(f"{arrows} {{before_quoted}}" for arrows in ARROWS), Named(), ("}}",), Place.WRAPPED),
            Call(ARROWS, Named((Flags(),)), ("}}",), Place.WRAPPED),
        ),
    ),
    Dialect(
        "calling_tool_bracket",
        Call(("[Calling tool: {name}(",), Named(), (")]", ") ]")),
        sample='[Calling tool: get_weather({"city": "Oslo"})]',
        also=(Call(("[Tool Call: {name}] Arguments:", "[Tool call: {name}] Arguments:"), Named()),),
        commitment=Commitment.TENTATIVE,
    ),
    Dialect(
        "vcp",
        Call(
            ("tool_name:「始」{name}「末」,", "tool_name:「始」{name}「末」"),
            Markup((Parameter("{key}:「始」", ("「末」 ,", "「末」")),)),
            place=Place.WRAPPED,
        ),
        sample="<<<[TOOL_REQUEST]>>>\ntool_name:「始」get_weather「末」,\ncity:「始」Oslo「末」\n<<<[END_TOOL_REQUEST]>>>",
        wrap=(Wrap(("<<<[TOOL_REQUEST]>>>",), ("<<<[END_TOOL_REQUEST]>>>",)),),
    ),
)
