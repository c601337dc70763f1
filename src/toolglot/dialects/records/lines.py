"""Calls by lines of text: ReAct, the flower marks of Qwen-Agent, GLM-4-9B, functionary.

Action: get_weather
Action Input: {"city": "Oslo"}
Observation:
"""

from __future__ import annotations

from toolglot.dialects.codecs.freetext import FreeText
from toolglot.dialects.codecs.named_call import Named
from toolglot.dialects.spec import Call, Channel, Commitment, Dialect, Manner, Place, Region, Show

REACT = (
    "Action{number}: {tick}{name_line}{tick}\n Action Input{number}:",
    "Action\n{tick}{name_line}{tick}\n Action Input:",
    "Action: {tick}{name_line}{tick}\n Action_Input:",
    "Action: {tick}{name_line}{tick}\n Input:",
    "Action: {tick}{name_line}{tick}\n Arguments:",
    "**Action:** {tick}{name_line}{tick}\n **Action Input:**",
    "**Action**: {tick}{name_line}{tick}\n **Action Input**:",
)
LABELS = ("Observation{number}:", "Thought{number}:", "Action{number}:")
FLOWERS = ("✿FUNCTION✿: {name}\n ✿ARGS✿:",)

DIALECTS = (
    Dialect(
        "react",
        Call(REACT, Named(), place=Place.LINE),
        sample='Action: get_weather\nAction Input: {"city": "Oslo"}\nObservation:',
        also=(Call(REACT, FreeText(LABELS), place=Place.LINE),),
        commitment=Commitment.TENTATIVE,
        results=("Observation:", "Observation {index}:"),
        teach=Manner(open="", close=""),
        returns="Observation: {content}",
    ),
    Dialect(
        "qwen_fncall",
        Call(FLOWERS, Named()),
        sample='✿FUNCTION✿: get_weather\n✿ARGS✿: {"city": "Oslo"}\n✿RESULT✿',
        also=(Call(FLOWERS, FreeText(("✿RESULT✿", "✿RETURN✿", "✿FUNCTION✿"))),),
        results=("✿RESULT✿", "✿RETURN✿"),
        teach=Manner(open="", close=""),
        returns="✿RESULT✿: {content}",
        models=("qwen-*", "qwen1*", "qwen2-*"),
    ),
    Dialect(
        "glm4_9b",
        Call(("{name}\n{before_quoted}",), Named(), place=Place.LINE),
        sample='get_weather\n{"city": "Oslo"}',
        commitment=Commitment.TENTATIVE,
        models=("glm-4-9b*", "glm-z1*"),
    ),
    Dialect(
        "functionary_v32",
        Call((">>>{name}\n{before_object}",), Named()),
        sample='>>>get_weather\n{"city": "Oslo"}',
        commitment=Commitment.TENTATIVE,
        regions=(Region((">>>all\n",), (), Channel.TEXT),),
        teach=Manner(Show.TYPES, "namespace functions {\n", "\n} // namespace functions"),
        models=("functionary*",),
    ),
)
