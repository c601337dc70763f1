"""Calls as labelled lines of text: ReAct, Qwen-Agent (✿ marks), GLM-4-9B, Functionary.

Action: get_weather
Action Input: {"city": "Oslo"}
Observation:
"""

from __future__ import annotations

from toolglot.dialects.codecs.freetext import FreeText
from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.spec import (
    CallSyntax,
    Channel,
    Commitment,
    Dialect,
    Position,
    Region,
    ToolListing,
    ToolPromptStyle,
)

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
        CallSyntax(REACT, NamedCall(), position=Position.LINE),
        sample='Action: get_weather\nAction Input: {"city": "Oslo"}\nObservation:',
        also=(CallSyntax(REACT, FreeText(LABELS), position=Position.LINE),),
        commitment=Commitment.TENTATIVE,
        results=("Observation:", "Observation {index}:"),
        teach=ToolPromptStyle(open="", close=""),
        returns="Observation: {content}",
    ),
    Dialect(
        "qwen_fncall",
        CallSyntax(FLOWERS, NamedCall()),
        sample='✿FUNCTION✿: get_weather\n✿ARGS✿: {"city": "Oslo"}\n✿RESULT✿',
        also=(CallSyntax(FLOWERS, FreeText(("✿RESULT✿", "✿RETURN✿", "✿FUNCTION✿"))),),
        results=("✿RESULT✿", "✿RETURN✿"),
        teach=ToolPromptStyle(open="", close=""),
        returns="✿RESULT✿: {content}",
        models=("qwen-*", "qwen1*", "qwen2-*"),
    ),
    Dialect(
        "glm4_9b",
        CallSyntax(("{name}\n{before_quoted}",), NamedCall(), position=Position.LINE),
        sample='get_weather\n{"city": "Oslo"}',
        commitment=Commitment.TENTATIVE,
        models=("glm-4-9b*", "glm-z1*"),
    ),
    Dialect(
        "functionary_v32",
        CallSyntax((">>>{name}\n{before_object}",), NamedCall()),
        sample='>>>get_weather\n{"city": "Oslo"}',
        commitment=Commitment.TENTATIVE,
        regions=(Region((">>>all\n",), (), Channel.TEXT),),
        teach=ToolPromptStyle(ToolListing.TYPES, "namespace functions {\n", "\n} // namespace functions"),
        models=("functionary*",),
    ),
)
