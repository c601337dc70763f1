"""Objects with unquoted keys and special string delimiters: Gemma 4 and FunctionGemma.

<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:3}<tool_call|>
"""

from __future__ import annotations

from toolglot.core.lenient_json import Literals
from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.codecs.object_members import ObjectMembers
from toolglot.dialects.spec import CallSyntax, Dialect, Position, Region, ToolListing, ToolPromptStyle, Wrap

LITERALS = Literals(quotes=('<|"|>', "<escape>", '"', "'"), native=frozenset({"unquoted_key"}))
BODY = NamedCall((ObjectMembers(literals=LITERALS), ObjectMembers("(", ")", (":", "="), LITERALS)))
CALL = CallSyntax(("call: {name}", "call:default_api:{name}"), BODY, position=Position.WRAPPED)
BARE = CallSyntax(
    # larger Gemini models write the same without marks, prefixed with the module name from their prompt
    (
        "call:{name}{before_object}",
        "call:default_api:{name}{before_object}",
        "declaration:default_api:{name}{before_object}",
        "default_api:{name}{before_object}",
    ),
    BODY,
    position=Position.LINE,
    repair="missing_opener",
)
NAME_ONLY = CallSyntax(("{name}",), BODY, position=Position.WRAPPED, repair="damaged_header")

DIALECTS = (
    Dialect(
        "gemma4",
        CALL,
        sample='<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>',
        wrap=(Wrap(("<|tool_call>",), ("<tool_call|>", "<|tool_call|>")),),
        also=(NAME_ONLY, BARE),
        regions=(Region(("<|channel>thought\n", "<|channel>thought"), ("<channel|>",)),),
        teach=ToolPromptStyle(ToolListing.DECLARATIONS, "", "", ("<|tool>", "<tool|>")),
        returns='<|tool_response>response:{name}{value:<|"|>{content}<|"|>}<tool_response|>',
        models=("gemma-4*",),
    ),
    Dialect(
        "functiongemma",
        CALL,
        sample="<start_function_call>call:get_weather{city:<escape>Oslo<escape>}<end_function_call>",
        wrap=(Wrap(("<start_function_call>",), ("<end_function_call>",)),),
        teach=ToolPromptStyle(
            ToolListing.DECLARATIONS, "", "", ("<start_function_declaration>", "<end_function_declaration>")
        ),
        returns="Function result for {name}: {content}",
        models=("functiongemma*",),
    ),
)
