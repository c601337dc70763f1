"""Special tokens around the name and the arguments: DeepSeek, Kimi K2, Solar, PLaMo, Step Audio.

<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>
{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.dialects.codecs.json_envelope import OBJECT
from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.shared_marks import TOOL_CALL
from toolglot.dialects.spec import CallSyntax, Dialect, Position, Region, ToolListing, ToolPromptStyle, Wrap

DEEPSEEK = Wrap(("<{bar}tool{gap}calls{gap}begin{bar}>",), ("<{bar}tool{gap}calls{gap}end{bar}>",))
BEGIN = "<{bar}tool{gap}call{gap}begin{bar}>"
END = "<{bar}tool{gap}call{gap}end{bar}>"
SEP = "<{bar}tool{gap}sep{bar}>"
PLAMO = (
    "<|plamo:begin_tool_request:plamo|> <|plamo:begin_tool_name:plamo|> {name} <|plamo:end_tool_name:plamo|> "
    "<|plamo:begin_tool_arguments:plamo|>"
)

DIALECTS = (
    Dialect(
        "deepseek_v3",
        CallSyntax(
            (f"{BEGIN}function{SEP}{{name}}{SEP}", f"{BEGIN}function{SEP}{{name}}"),
            NamedCall(),
            (f"``` {END}", END, "```"),
        ),
        sample='<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Oslo"}'
        "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        wrap=(DEEPSEEK,),
        results=("<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>"),
        between="\n",
        returns="<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>{content}<｜tool▁output▁end｜><｜tool▁outputs▁end｜>",
        models=("deepseek-v3-0324*", "deepseek-r1*", "deepseek-v2.5*", "deepseek-v3"),
    ),
    Dialect(
        "deepseek_v31",
        CallSyntax(
            (f"{BEGIN}{{name}}{SEP}", f"{BEGIN}{{name}}\n"),
            NamedCall(),
            (END, f"``` {END}"),
        ),
        sample='<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
        wrap=(DEEPSEEK,),
        also=(
            # no repair: as a damaged header it would also be tried after every bare name
            CallSyntax((f"{{name}}{SEP}",), NamedCall(), (END,), Position.WRAPPED),
            CallSyntax((f"{BEGIN}{{name}}{{before_object}}",), NamedCall(), (END,), repair="damaged_header"),
        ),
        between="",
        returns="<｜tool▁output▁begin｜>{content}<｜tool▁output▁end｜>",
        models=("deepseek-v3.1*", "*terminus*", "deepseek-v3.2-exp*", "cogito-v2*"),
    ),
    Dialect(
        "kimi_k2",
        CallSyntax(
            (
                "<|tool_call_begin|> {name_id} <|tool_call_argument_begin|>",
                "<|tool_call_begin|> {name_id} <|tool_call_arguments_begin|>",
                "<|tool_call_begin|> {name_id}{before_object}",
            ),
            NamedCall(),
            ("<|tool_call_argument_end|> <|tool_call_end|>", "<|tool_call_end|>"),
        ),
        sample="<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>',
        wrap=(
            Wrap(
                ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
                ("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
            ),
        ),
        also=(
            CallSyntax(
                ("{name_id}<|tool_call_argument_begin|>",),
                NamedCall(),
                ("<|tool_call_end|>",),
                Position.LINE,
                "missing_opener",
            ),
            replace(OBJECT, header=("<|tool_call_begin|> {{",), position=Position.ANYWHERE),
        ),
        results=("## Return of functions.",),
        between="",
        teach=ToolPromptStyle(ToolListing.ARRAY, "", ""),
        returns="## Return of functions.{name}:0\n{content}",
        models=("kimi-k2*", "*moonshot*"),
    ),
    Dialect(
        "solar_open",
        CallSyntax(
            ("<|tool_call:begin|>{id}<|tool_call:name|>{name}<|tool_call:args|>",),
            NamedCall(),
            ("<|tool_call:end|>",),
        ),
        sample="<|tool_calls|><|tool_call:begin|>k3v9q0x1z0<|tool_call:name|>get_weather<|tool_call:args|>"
        '{"city": "Oslo"}<|tool_call:end|><|calls|>',
        wrap=(Wrap(("<|tool_calls|>",), ("<|calls|>",)),),
        between="",
        models=("solar-open*",),
    ),
    Dialect(
        "plamo3",
        CallSyntax(
            (f"{PLAMO} <|plamo:constrain|> json <|plamo:msg|>", PLAMO),
            NamedCall(),
            ("<|plamo:end_tool_arguments:plamo|> <|plamo:end_tool_request:plamo|>",),
        ),
        sample="<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>"
        "get_weather<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json"
        '<|plamo:msg|>{"city": "Oslo"}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>'
        "<|plamo:end_tool_requests:plamo|>",
        wrap=(Wrap(("<|plamo:begin_tool_requests:plamo|>",), ("<|plamo:end_tool_requests:plamo|>",)),),
        regions=(Region(("<|plamo:begin_think:plamo|>",), ("<|plamo:end_think:plamo|>",)),),
        turns=("<|plamo:tag|>",),
        between="",
        models=("plamo-3*", "plamo3*"),
    ),
    Dialect(
        "step_audio2",
        CallSyntax(("function\n{name}\n{before_object}",), NamedCall(), position=Position.WRAPPED),
        sample='<tool_call>function\nget_weather\n{"city": "Oslo"}</tool_call>',
        wrap=TOOL_CALL,
        models=("step-audio-2*",),
    ),
)
