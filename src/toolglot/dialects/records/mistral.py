"""Mistral: a control token, then either a JSON list of calls, or a name and its arguments.

[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo", "days": 3}
"""

from __future__ import annotations

from toolglot.dialects.codecs.json_envelope import LIST
from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.spec import CallSyntax, Dialect, Position, Region, ToolListing, ToolPromptStyle, Wrap

TOOL_CALLS = Wrap(open=("[TOOL_CALLS]",))
AVAILABLE_TOOLS = ToolPromptStyle(ToolListing.ARRAY, "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]")

DIALECTS = (
    Dialect(
        "mistral_array",
        LIST,
        sample='[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "a1b2c3d40"}]',
        wrap=(TOOL_CALLS,),
        regions=(Region(("[THINK]",), ("[/THINK]",)),),
        results=("[TOOL_RESULTS]",),
        between=", ",
        teach=AVAILABLE_TOOLS,
        returns='[TOOL_RESULTS]{"content": {json}}[/TOOL_RESULTS]',
        models=("mistral-7b*", "mistral-nemo*", "mixtral*", "mistral-large-2407*", "mistral-small*"),
    ),
    Dialect(
        "mistral_args",
        CallSyntax(("{name} [ARGS]",), NamedCall(), position=Position.LINE),
        sample='[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}',
        wrap=(TOOL_CALLS,),
        also=(
            CallSyntax(("{name}",), NamedCall(), position=Position.WRAPPED, repair="damaged_header"),
            # the name before the mark
            CallSyntax(("{name} [TOOL_CALLS]{before_object}",), NamedCall(), (), Position.LINE, "damaged_header"),
        ),
        teach=AVAILABLE_TOOLS,
        returns="[TOOL_RESULTS]{content}[/TOOL_RESULTS]",
        models=("magistral*", "devstral*", "ministral-3*", "mistral-large-3*"),
    ),
    Dialect(
        "mistral_callid",
        CallSyntax(("{name} [CALL_ID] {id} [ARGS]",), NamedCall(), position=Position.WRAPPED),
        sample='[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d40[ARGS]{"city": "Oslo"}',
        wrap=(TOOL_CALLS,),
        teach=AVAILABLE_TOOLS,
        returns="[TOOL_RESULTS]{content}[/TOOL_RESULTS]",
        models=("mistral-small-3.2*",),
    ),
)
