"""Special tokens around the name and the arguments: DeepSeek, Kimi K2, Solar.

<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>
{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>
"""

from __future__ import annotations

from dataclasses import replace

from toolglot.dialects.codecs.json_envelope import OBJECT
from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.spec import CallSyntax, Dialect, Position, ToolListing, ToolPromptStyle, Wrap

DEEPSEEK = Wrap(("<{bar}tool{gap}calls{gap}begin{bar}>",), ("<{bar}tool{gap}calls{gap}end{bar}>",))
BEGIN = "<{bar}tool{gap}call{gap}begin{bar}>"
END = "<{bar}tool{gap}call{gap}end{bar}>"
SEP = "<{bar}tool{gap}sep{bar}>"

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
)
