"""Bare keys, and strings between marks of their own: Gemma 4 and FunctionGemma.

<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:3}<tool_call|>
"""

from __future__ import annotations

from toolglot.core.lenient_json import Literals
from toolglot.dialects.codecs.named_call import Named
from toolglot.dialects.codecs.object_members import Members
from toolglot.dialects.spec import Call, Dialect, Manner, Place, Region, Show, Wrap

LITERALS = Literals(quotes=('<|"|>', "<escape>", '"', "'"), native=frozenset({"unquoted_key"}))
BODY = Named((Members(literals=LITERALS), Members("(", ")", (":", "="), LITERALS)))
CALL = Call(("call: {name}", "call:default_api:{name}"), BODY, place=Place.WRAPPED)
BARE = Call(
    # Gemini's larger models write the same without marks, under the name of the module that they see
    (
        "call:{name}{before_object}",
        "call:default_api:{name}{before_object}",
        "declaration:default_api:{name}{before_object}",
        "default_api:{name}{before_object}",
    ),
    BODY,
    place=Place.LINE,
    repair="missing_opener",
)
NAME_ONLY = Call(("{name}",), BODY, place=Place.WRAPPED, repair="damaged_header")

DIALECTS = (
    Dialect(
        "gemma4",
        CALL,
        sample='<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>',
        wrap=(Wrap(("<|tool_call>",), ("<tool_call|>", "<|tool_call|>")),),
        also=(NAME_ONLY, BARE),
        regions=(Region(("<|channel>thought\n", "<|channel>thought"), ("<channel|>",)),),
        teach=Manner(Show.DECLARATIONS, "", "", ("<|tool>", "<tool|>")),
        returns='<|tool_response>response:{name}{value:<|"|>{content}<|"|>}<tool_response|>',
        models=("gemma-4*",),
    ),
    Dialect(
        "functiongemma",
        CALL,
        sample="<start_function_call>call:get_weather{city:<escape>Oslo<escape>}<end_function_call>",
        wrap=(Wrap(("<start_function_call>",), ("<end_function_call>",)),),
        teach=Manner(Show.DECLARATIONS, "", "", ("<start_function_declaration>", "<end_function_declaration>")),
        returns="Function result for {name}: {content}",
        models=("functiongemma*",),
    ),
)
