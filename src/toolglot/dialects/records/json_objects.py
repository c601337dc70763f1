"""JSON objects that name their tool, between various marks or none: Hermes and many others.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}
</tool_call>
"""

from __future__ import annotations

from toolglot.dialects.codecs.json_envelope import LIST, OBJECT
from toolglot.dialects.shared_marks import (
    OWN_TURNS,
    PYTHON_TAG,
    STRAY_ENDS,
    STRAY_TURNS,
    THINK,
    TOOL_CALL,
    TOOL_CALLS,
    TOOL_RESPONSE,
    TURN_ENDS,
    TURN_STARTS,
)
from toolglot.dialects.spec import Channel, Commitment, Dialect, Position, Region, ToolListing, ToolPromptStyle, Wrap

TOOL_CALL_TOKEN = Wrap(open=("<|tool_call|>",))

# models sometimes rename the mark; the JSON inside must then name a known tool
RENAMED = Wrap(
    open=("<{marker}>{before_json}", "[{marker}]{before_json}"),
    close=("</{marker}>", "[/{marker}]", "[END_{marker}]", "[END {marker}]"),
    commitment=Commitment.TENTATIVE,
    repair="renamed_mark",
)

DIALECTS = (
    Dialect(
        "hermes",
        OBJECT,
        sample='<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
        returns=TOOL_RESPONSE,
        wrap=(*TOOL_CALL, RENAMED),
        regions=(THINK,),
        results=TURN_STARTS,
        turns=(*TURN_ENDS, *OWN_TURNS),
        noise=(*STRAY_TURNS, *STRAY_ENDS),
        models=("*hermes*", "qwen2.5*", "qwq*", "qwen3-vl*", "granite-4*", "exaone-4*", "smollm3*", "qwen3*"),
    ),
    Dialect(
        "ernie45",
        OBJECT,
        sample='<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
        returns=TOOL_RESPONSE,
        wrap=TOOL_CALL,
        models=("ernie-4.5*",),
    ),
    Dialect(
        "longcat",
        OBJECT,
        sample='<longcat_tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</longcat_tool_call>',
        wrap=(Wrap(("<longcat_tool_call>",), ("</longcat_tool_call>",)),),
        returns=TOOL_RESPONSE,
        models=("longcat*",),
    ),
    Dialect(
        "granite3",
        LIST,
        sample='<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
        wrap=(TOOL_CALL_TOKEN, *TOOL_CALL, RENAMED),
        between=", ",
        models=("granite-3*",),
    ),
    Dialect(
        "granite20b",
        OBJECT,
        sample='<function_call> {"name": "get_weather", "arguments": {"city": "Oslo"}}',
        wrap=(Wrap(("<function_call>",)),),
        noise=("</function_call>",),
        models=("granite-20b-functioncalling*",),
    ),
    Dialect(
        "functools",
        LIST,
        sample='functools[{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
        wrap=(Wrap(("functools{before_json}", "-> tool/function_call\n"), (), Position.LINE),),
        between=", ",
        models=("firefunction*", "hyperclovax-seed-think-14b*"),
    ),
    Dialect(
        "phi4_fc",
        LIST,
        sample='<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]<|/tool_call|>',
        wrap=(TOOL_CALL_TOKEN,),
        noise=("<|/tool_call|>",),
        between=", ",
        models=("phi-4-mini*",),
    ),
    Dialect(
        "tool_calls_array",
        LIST,
        sample='<tool_calls>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]</tool_calls>',
        wrap=(TOOL_CALLS,),
        between=", ",
        models=("*jamba*", "hunyuan-a13b*", "apriel*"),
    ),
    Dialect(
        "minimax_m1",
        OBJECT,
        sample='<tool_calls>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_calls>',
        wrap=(TOOL_CALLS,),
        between="\n",
        teach=ToolPromptStyle(each=("<tool>", "</tool>")),
        returns="<response>{content}</response>",
        models=("minimax-m1*",),
    ),
    Dialect(
        "toolcall_upper",
        LIST,
        sample='<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]</TOOLCALL>',
        wrap=(Wrap(("<TOOLCALL>",), ("</TOOLCALL>",)),),
        between=", ",
        teach=ToolPromptStyle(ToolListing.ARRAY, "<AVAILABLE_TOOLS>", "</AVAILABLE_TOOLS>"),
        returns="<TOOL_RESPONSE>\n{content}\n</TOOL_RESPONSE>",
        models=("*nemotron-nano-9b*", "llama*nemotron*"),
    ),
    Dialect(
        "llama3_json",
        OBJECT,
        sample='<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}',
        wrap=(PYTHON_TAG,),
        between="; ",
        teach=ToolPromptStyle(open="", close=""),
        returns='{"output": {json}}',
        models=("llama-3*", "*llama-3.1*", "*llama-3.3*"),
    ),
    Dialect(
        "internlm2",
        OBJECT,
        sample='<|action_start|><|plugin|>\n{"name": "get_weather", "parameters": {"city": "Oslo"}}<|action_end|>',
        wrap=(Wrap(("<|action_start|> <|plugin|>",), ("<|action_end|>",)),),
        models=("internlm2*", "intern-s1*"),
    ),
    Dialect(
        "cohere_action",
        LIST,
        sample='<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": '
        '{"city": "Oslo"}}\n]<|END_ACTION|>',
        wrap=(Wrap(("<|START_ACTION|>",), ("<|END_ACTION|>",)),),
        regions=(
            Region(("<|START_THINKING|>",), ("<|END_THINKING|>",)),
            Region(("<|START_RESPONSE|>", "<|START_TEXT|>"), ("<|END_RESPONSE|>", "<|END_TEXT|>"), Channel.MESSAGE),
        ),
        results=("<|START_TOOL_RESULT|>",),
        between=",\n    ",
        teach=ToolPromptStyle(ToolListing.ARRAY, "## Available Tools\n```json", "```"),
        returns='<|START_TOOL_RESULT|>[{"tool_call_id": "0", "results": {"0": {json}}}]<|END_TOOL_RESULT|>',
        models=("command-r7b*", "command-a*"),
    ),
    Dialect(
        "apertus",
        LIST,
        sample='<|tools_prefix|>[{"get_weather": {"city": "Oslo"}}]<|tools_suffix|>',
        wrap=(Wrap(("<|tools_prefix|>",), ("<|tools_suffix|>",)),),
        regions=(Region(("<|inner_prefix|>",), ("<|inner_suffix|>",)),),
        between=", ",
        teach=ToolPromptStyle(ToolListing.TYPES, "", ""),
        models=("apertus*",),
    ),
    Dialect(
        "gigachat3",
        OBJECT,
        sample='<|function_call|>{"name": "get_weather", "arguments": {"city": "Oslo"}}',
        wrap=(
            Wrap(("<|function_call|>",)),
            Wrap(("function call<|role_sep|>",), position=Position.LINE),
        ),
        teach=ToolPromptStyle(ToolListing.TYPES, "namespace functions {\n", "\n} // namespace functions"),
        models=("gigachat3*",),
    ),
    Dialect(
        "doubao",
        LIST,
        sample='<|FunctionCallBegin|>[{"name": "get_weather", "parameters": {"city": "Oslo"}}]<|FunctionCallEnd|>',
        wrap=(Wrap(("<|FunctionCallBegin|>",), ("<|FunctionCallEnd|>",)),),
        between=", ",
        models=("doubao*",),
    ),
    Dialect(
        "openpangu",
        LIST,
        sample='[unused11][{"name": "get_weather", "arguments": {"city": "Oslo"}}][unused12]',
        wrap=(Wrap(("[unused11]",), ("[unused12]",)),),
        regions=(Region(("[unused16]",), ("[unused17]",)),),
        turns=("[unused10]",),
        between=", ",
        models=("openpangu*", "pangu*"),
    ),
    Dialect(
        "bare_json",
        OBJECT.at(Position.LINE),
        sample='{"name": "get_weather", "arguments": {"city": "Oslo"}}',
        confidence=0.95,
        commitment=Commitment.TENTATIVE,
    ),
    Dialect(
        "bare_json_array",
        LIST.at(Position.LINE),
        sample='[{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
        confidence=0.95,
        commitment=Commitment.TENTATIVE,
        between=", ",
        models=("xlam*", "hammer*", "watt-tool*"),
    ),
)
