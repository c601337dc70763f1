"""Calls in Python syntax: Llama 4, OLMo 3, LFM2 and others.

[get_weather(city="Oslo", days=3)]
"""

from __future__ import annotations

from toolglot.dialects.codecs.named_call import PYTHON_CALL, QUOTED_CALL, SOLE_CALL
from toolglot.dialects.shared_marks import FUNCTION_CALLS, PYTHON_STUBS, PYTHON_TAG, TOOL_CALL_TOKENS
from toolglot.dialects.spec import Commitment, Dialect, Position, ToolListing, ToolPromptStyle, Wrap

DIALECTS = (
    Dialect(
        "python_call",
        SOLE_CALL,
        sample='get_weather(city="Oslo")',
        confidence=0.95,
        commitment=Commitment.ALONE,
        between="\n",
        teach=ToolPromptStyle(ToolListing.ARRAY, "", ""),
        returns='{"output": {json}}',
    ),
    Dialect(
        "pythonic",
        PYTHON_CALL,
        sample='[get_weather(city="Oslo")]',
        wrap=(
            Wrap(("[",), ("])", "]]", "];", "],", "].", "]"), Position.LINE, Commitment.WHOLE),
            Wrap(("**[",), ("]**",), Position.LINE, Commitment.WHOLE),
        ),
        also=(QUOTED_CALL,),
        confidence=0.95,
        commitment=Commitment.TENTATIVE,
        between=", ",
        teach=ToolPromptStyle(ToolListing.ARRAY, "", ""),
        returns='{"output": {json}}',
        models=("llama-3.2*", "toolace*", "gemma-3*"),
    ),
    Dialect(
        "llama4_pythonic",
        PYTHON_CALL,
        sample='<|python_start|>[get_weather(city="Oslo")]<|python_end|>',
        wrap=(Wrap(("<|python_start|>",), ("<|python_end|>",)),),
        between=", ",
        teach=ToolPromptStyle(ToolListing.ARRAY, "", ""),
        returns='{"output": {json}}',
        models=("llama-4*",),
    ),
    Dialect(
        "olmo3",
        PYTHON_CALL,
        sample='<function_calls>\nget_weather(city="Oslo")\n</function_calls>',
        wrap=(FUNCTION_CALLS,),
        between="\n",
        teach=ToolPromptStyle(ToolListing.ARRAY, "<functions>", "</functions>"),
        models=("olmo-3*",),
    ),
    Dialect(
        "lfm2",
        PYTHON_CALL,
        sample="<|tool_call_start|>[get_weather(city='Oslo')]<|tool_call_end|>",
        wrap=(TOOL_CALL_TOKENS,),
        between=", ",
        teach=ToolPromptStyle(ToolListing.ARRAY, "List of tools: <|tool_list_start|>", "<|tool_list_end|>"),
        returns="<|tool_response_start|>{content}<|tool_response_end|>",
        models=("lfm2*",),
    ),
    Dialect(
        "llama31_builtin",
        PYTHON_CALL,
        sample='<|python_tag|>get_weather.call(city="Oslo")',
        wrap=(PYTHON_TAG,),
        between="; ",
        teach=ToolPromptStyle(ToolListing.ARRAY, "", ""),
        returns='{"output": {json}}',
    ),
    Dialect(
        "minicpm3",
        PYTHON_CALL,
        sample='<|tool_call_start|>\n```python\nget_weather(city="Oslo")\n```\n<|tool_call_end|>',
        wrap=(TOOL_CALL_TOKENS,),
        teach=PYTHON_STUBS,
        models=("minicpm3*",),
    ),
    Dialect(
        "nexus",
        PYTHON_CALL,
        sample='Call: get_weather(city="Oslo")<bot_end>',
        wrap=(Wrap(("Call:",), ("<bot_end>",), Position.LINE, Commitment.WHOLE),),
        commitment=Commitment.TENTATIVE,
        between="; ",
        teach=PYTHON_STUBS,
        models=("nexusraven*",),
    ),
)
