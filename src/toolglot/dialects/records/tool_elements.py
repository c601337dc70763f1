"""The tool name as the tag: Roo, Cline, Kilo and other "XML" prompts.

    <get_weather>
    <city>Oslo</city>
    </get_weather>

A bare tag is ordinary text, so the name must be known and a declared parameter must follow.
"""

from __future__ import annotations

from toolglot.dialects.codecs.parameter_marks import VERBATIM
from toolglot.dialects.codecs.tagged_parameters import Parameter, TaggedParameters
from toolglot.dialects.codecs.whitespace import Trim
from toolglot.dialects.codecs.yaml_body import YamlBody
from toolglot.dialects.shared_marks import FUNCTION_CALLS, FUNCTION_RESULTS
from toolglot.dialects.spec import CallSyntax, Commitment, Dialect, Region, ToolListing, ToolPromptStyle, Wrap

PREFIXED = TaggedParameters((Parameter("]<]minimax[>[<{key}>", ("]<]minimax[>[</{key}>", "</{key}>")),))
ELEMENTS = TaggedParameters(
    (
        Parameter("<{key}>", ("</ {key} >",), Trim.BLANKS, VERBATIM),
        Parameter("<{key} />", ()),
        Parameter("<{key}{attributes}>", ("</ {key} >",), Trim.BLANKS, VERBATIM, repair="dropped_attributes"),
    ),
    heads="<{",
)

DIALECTS = (
    Dialect(
        "roo_xml",
        CallSyntax(("<{name}>", "<{name}{attributes}/>{before_end}"), ELEMENTS, ("</ {key} >",)),
        sample="<get_weather>\n<city>Oslo</city>\n</get_weather>",
        commitment=Commitment.TENTATIVE,
        teach=ToolPromptStyle(ToolListing.DOCUMENTS),
        models=("qwen3-max*",),
    ),
    Dialect(
        "yaml_xml",
        CallSyntax(("<{name}>",), YamlBody(), ("</ {key} >",)),
        sample="<get_weather>\ncity: Oslo\n</get_weather>",
        commitment=Commitment.TENTATIVE,
    ),
    Dialect(
        "minimax_m3",
        CallSyntax(("]<]minimax[>[<invoke name={q}{name}{q}>",), PREFIXED, ("]<]minimax[>[</invoke>", "</invoke>")),
        sample=']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Oslo'
        "]<]minimax[>[</city>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        wrap=(Wrap(("]<]minimax[>[<tool_call>",), ("]<]minimax[>[</tool_call>", "</tool_call>")),),
        regions=(Region(("<mm:think>",), ("</mm:think>",)),),
        between="\n",
        teach=ToolPromptStyle(each=("<tool>", "</tool>")),
        returns="<response>{content}</response>",
        models=("minimax-m3*",),
    ),
    Dialect(
        "anthropic_legacy",
        CallSyntax(("<invoke> <tool_name>{name}</tool_name>",), ELEMENTS, ("</invoke>",)),
        sample="<function_calls>\n<invoke>\n<tool_name>get_weather</tool_name>\n<parameters>\n<city>Oslo</city>\n"
        "</parameters>\n</invoke>\n</function_calls>",
        wrap=(FUNCTION_CALLS,),
        between="\n",
        returns=FUNCTION_RESULTS,
        models=("claude-2*", "claude-instant*"),
    ),
)
