"""Special tokens around name and arguments: DeepSeek, Kimi, Solar.

<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>
{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>
"""

from __future__ import annotations

from dataclasses import replace

from toolglot.dialects.codecs.json_envelope import OBJECT
from toolglot.dialects.codecs.named_call import Named
from toolglot.dialects.spec import Call, Dialect, Manner, Place, Show, Wrap

DEEPSEEK = Wrap(("<{bar}tool{gap}calls{gap}begin{bar}>",), ("<{bar}tool{gap}calls{gap}end{bar}>",))
BEGIN = "<{bar}tool{gap}call{gap}begin{bar}>"
END = "<{bar}tool{gap}call{gap}end{bar}>"
SEP = "<{bar}tool{gap}sep{bar}>"

DIALECTS = (
    Dialect(
        "deepseek_v3",
        Call(
            (f"{BEGIN}function{SEP}{{name}}{SEP}", f"{BEGIN}function{SEP}{{name}}"),
            Named(),
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
        Call(
            (f"{BEGIN}{{name}}{SEP}", f"{BEGIN}{{name}}\n"),
            Named(),
            (END, f"``` {END}"),
        ),
        sample='<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
        wrap=(DEEPSEEK,),
        also=(
            # without repair: a damaged header would be asked for behind names that stand alone
            Call((f"{{name}}{SEP}",), Named(), (END,), Place.WRAPPED),
            Call((f"{BEGIN}{{name}}{{before_object}}",), Named(), (END,), repair="damaged_header"),
        ),
        between="",
        returns="<｜tool▁output▁begin｜>{content}<｜tool▁output▁end｜>",
        models=("deepseek-v3.1*", "*terminus*", "deepseek-v3.2-exp*", "cogito-v2*"),
    ),
    Dialect(
        "kimi_k2",
        Call(
            (
                "<|tool_call_begin|> {name_id} <|tool_call_argument_begin|>",
                "<|tool_call_begin|> {name_id} <|tool_call_arguments_begin|>",
                "<|tool_call_begin|> {name_id}{before_object}",
            ),
            Named(),
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
            Call(
                ("{name_id}<|tool_call_argument_begin|>",),
                Named(),
                ("<|tool_call_end|>",),
                Place.LINE,
                "missing_opener",
            ),
            replace(OBJECT, header=("<|tool_call_begin|> {{",), place=Place.ANYWHERE),
        ),
        results=("## Return of functions.",),
        between="",
        teach=Manner(Show.ARRAY, "", ""),
        returns="## Return of functions.{name}:0\n{content}",
        models=("kimi-k2*", "*moonshot*"),
    ),
    Dialect(
        "solar_open",
        Call(
            ("<|tool_call:begin|>{id}<|tool_call:name|>{name}<|tool_call:args|>",),
            Named(),
            ("<|tool_call:end|>",),
        ),
        sample="<|tool_calls|><|tool_call:begin|>k3v9q0x1z0<|tool_call:name|>get_weather<|tool_call:args|>"
        '{"city": "Oslo"}<|tool_call:end|><|calls|>',
        wrap=(Wrap(("<|tool_calls|>",), ("<|calls|>",)),),
        between="",
        models=("solar-open*",),
    ),
)
