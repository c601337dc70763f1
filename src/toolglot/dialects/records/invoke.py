"""``invoke`` and ``parameter`` elements: the Claude format and formats derived from it, in any XML namespace.

<function_calls>
<invoke name="get_weather">
<parameter name="city">Oslo</parameter>
</invoke>
</function_calls>
"""

from __future__ import annotations

from html import unescape

from toolglot.dialects.codecs.tagged_parameters import Parameter, TaggedParameters
from toolglot.dialects.shared_marks import FUNCTION_CALLS, FUNCTION_RESULTS, FUNCTIONS, TOOL_CALLS, TOOL_RESPONSE
from toolglot.dialects.spec import CallSyntax, Channel, Dialect, Position, Region, ToolPromptStyle, Wrap

INVOKE = CallSyntax(
    ("<{ns}invoke name={q}{name}{q}{attributes}{slash}>", "<{ns}invoke tool={q}{name}{q}{attributes}>"),
    TaggedParameters(
        (
            Parameter("<{ns}parameter name={q}{key}{q} type={q}{type}{q}>", ("</{ns}parameter>",)),
            Parameter('<{ns}parameter name={q}{key}{q} value="', ('"{attributes}/>', '" />', '">'), decode=unescape),
            Parameter("<{ns}parameter name={q}{key}{q}{attributes}>", ("</{ns}parameter{eqkey}>",)),
            Parameter("<{key}>", ("</{key}>",)),
        )
    ),
    ("</{ns}invoke>",),
)


def call_dsml(sign: str, repair: str = "", end: str = " {slash}>", word: str = "DSML") -> CallSyntax:
    """Build a call syntax whose tags carry this prefix; ``end`` allows for a missing bracket of the header."""
    closers = (f"</{sign}parameter>", f"<{{bar}}/{word}{{bar}}parameter>", "</parameter>")
    return CallSyntax(
        (f"<{sign}invoke name={{q}}{{name}}{{q}}{end}",),
        TaggedParameters(
            (
                Parameter(f"<{sign}parameter name={{q}}{{key}}{{q}} string={{q}}{{type}}{{q}}>", closers),
                Parameter(f"<{sign}parameter name={{q}}{{key}}{{q}}{{attributes}}>", closers),
            )
        ),
        (f"</{sign}invoke>", f"<{{bar}}/{word}{{bar}}invoke>", "</invoke>"),
        repair=repair,
    )


def wrap_dsml(*words: str) -> tuple[Wrap, ...]:
    sound = tuple(f"<{SIGN}{word}>" for word in words)
    close = tuple(f"{closer}{word}>" for word in words for closer in (f"</{SPACED_SIGN}", "<{bar}/DSML{bar}", "</"))
    damaged = tuple(f"<{SPACED_SIGN}{word}{end}" for word in words for end in (">", "\n{before_dsml}"))
    return Wrap(sound, close), Wrap(damaged, close, repair="damaged_opener")


SIGN, SPACED_SIGN = "{bar}DSML{bar} ", " {bar} DSML {bar} "
DSML = call_dsml(SIGN)
GCML_SIGN = "{bar}GCML{bar} "
DAMAGED_DSML = (
    call_dsml(SPACED_SIGN, "damaged_header"),
    call_dsml(SIGN, "damaged_header", "{slash}\n{before_dsml}"),
)

PARAMS = TaggedParameters(
    (
        Parameter('<param name="{key}" value="', ('" type="{type}" />', '" />', '">'), decode=unescape),
        Parameter("<param name={q}{key}{q} type={q}{type}{q}>", ("</param>",), sections=True),
        Parameter("<param name={q}{key}{q}>", ("</param>",), sections=True),
        Parameter("<parameter name={q}{key}{q}>", ("</parameter>",)),
        Parameter("<argument name={q}{key}{q}>", ("</argument>",)),
        Parameter("<arg name={q}{key}{q}>", ("</arg>",)),
    )
)
FUNCTION = (
    "<function name={q}{name}{q}{attributes}>",
    "<tool_call name={q}{name}{q}{attributes}>",
    "<tool_call id={q}{id}{q} name={q}{name}{q}{attributes}>",
    "<function_call name={q}{name}{q}{attributes}>",
    "<tool_use name={q}{name}{q}{attributes}>",
    "<tool name={q}{name}{q}{attributes}>",
)
ATEM_CLOSE = ("</atem:function_calls> <|eom|>", "</atem:function_calls> <|eot|>", "</atem:function_calls>")

DIALECTS = (
    Dialect(
        "dsml_v32",
        DSML,
        sample='<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" '
        'string="true">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        wrap=wrap_dsml("function_calls"),
        also=DAMAGED_DSML,
        between="\n",
        teach=FUNCTIONS,
        returns="<function_results>\n<result>{content}</result>\n</function_results>",
        models=("deepseek-v3.2*",),
    ),
    Dialect(
        "dsml_v4",
        DSML,
        sample='<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" '
        'string="true">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        wrap=wrap_dsml("tool_calls", "tool_use", "toolcall"),
        also=DAMAGED_DSML,
        between="\n",
        teach=ToolPromptStyle(open="### Available Tool Schemas\n", close=""),
        returns="<tool_result>{content}</tool_result>",
        models=("deepseek-v4*",),
    ),
    Dialect(
        "dsml_v41",
        DSML,
        sample='<｜DSML｜ calls>\n<｜DSML｜ invoke name="get_weather">\n<｜DSML｜ parameter name="city" '
        'string="true">Oslo</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>',
        wrap=wrap_dsml("calls"),
        also=DAMAGED_DSML,
        between="\n",
        teach=ToolPromptStyle(open="### Available Tool Schemas\n", close=""),
        returns="<tool_result>{content}</tool_result>",
        models=("deepseek-v4.1*",),
    ),
    Dialect(
        "gigachat35",
        call_dsml(GCML_SIGN, word="GCML"),
        sample='<｜GCML｜tool_calls>\n<｜GCML｜invoke name="get_weather">\n<｜GCML｜parameter name="city" '
        'string="true">Oslo</｜GCML｜parameter>\n</｜GCML｜invoke>\n</｜GCML｜tool_calls>',
        wrap=(Wrap((f"<{GCML_SIGN}tool_calls>",), (f"</{GCML_SIGN}tool_calls>",)),),
        between="\n",
        models=("gigachat3.5*", "gigachat-3.5*"),
    ),
    Dialect(
        "muse_glimmer",
        INVOKE,
        sample='<|start|>assistant to=get_weather<|message|><atem:function_calls>\n<atem:invoke name="get_weather">\n'
        '<atem:parameter name="city">Oslo</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eot|>',
        wrap=(
            Wrap(("<|start|>assistant to={name}<|message|> <atem:function_calls>",), ATEM_CLOSE),
            Wrap(("<atem:function_calls>",), ATEM_CLOSE),
            Wrap(("to={name}<|message|> <atem:function_calls>",), ("</atem:function_calls>",), Position.LINE),
        ),
        regions=(
            Region(("<|start|>assistant to=self<|message|>",), ("<|eom|>", "<|eot|>")),
            Region(("to=self<|message|>",), ("<|eom|>", "<|eot|>")),
            Region(("<|start|>assistant to=user<|message|>",), ("<|eom|>", "<|eot|>"), Channel.MESSAGE),
            Region(("to=user<|message|>",), ("<|eom|>", "<|eot|>"), Channel.MESSAGE),
        ),
        teach=ToolPromptStyle(open="Tool metadata:", close=""),
        returns='<tool_output name="{name}">\n{content}\n</tool_output>',
        models=("muse-glimmer*",),
    ),
    Dialect(
        "minimax_m2",
        INVOKE,
        sample='<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
        wrap=(Wrap(("<minimax:tool_call>",), ("</minimax:tool_call>",)),),
        between="\n",
        teach=ToolPromptStyle(each=("<tool>", "</tool>")),
        returns="<response>{content}</response>",
        models=("minimax-m2*",),
    ),
    Dialect(
        "anthropic",
        INVOKE,
        sample='<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n'
        "</function_calls>",
        wrap=(FUNCTION_CALLS, TOOL_CALLS),
        between="\n",
        teach=FUNCTIONS,
        returns=FUNCTION_RESULTS,
        models=("claude*",),
    ),
    Dialect(
        "anthropic_ns",
        INVOKE,
        sample='<ns:function_calls>\n<ns:invoke name="get_weather">\n<ns:parameter name="city">Oslo</ns:parameter>\n'
        "</ns:invoke>\n</ns:function_calls>",
        wrap=(FUNCTION_CALLS,),
        between="\n",
        teach=FUNCTIONS,
        returns=FUNCTION_RESULTS,
    ),
    Dialect(
        "dots",
        INVOKE,
        sample='<dots_function_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n'
        "</dots_function_call>",
        wrap=(Wrap(("<dots_function_call>",), ("</dots_function_call>",)),),
        between="\n",
        models=("dots*",),
    ),
    Dialect(
        "step3",
        CallSyntax(
            (
                "<｜tool_call_begin｜>function<｜tool_sep｜> <steptml:invoke name={q}{name}{q}>",
                "<steptml:invoke name={q}{name}{q}>",
            ),
            INVOKE.body,
            ("</steptml:invoke> <｜tool_call_end｜>", "</steptml:invoke>"),
        ),
        sample='<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">\n'
        '<steptml:parameter name="city">Oslo</steptml:parameter>\n</steptml:invoke><｜tool_call_end｜>'
        "<｜tool_calls_end｜>",
        wrap=(Wrap(("<｜tool_calls_begin｜>",), ("<｜tool_calls_end｜>",)),),
        between="\n",
        models=("step3*",),
    ),
    Dialect(
        "minicpm5",
        CallSyntax(FUNCTION, PARAMS, ("</function>", "</tool_call>", "</function_call>", "</tool_use>", "</tool>")),
        sample='<function name="get_weather"><param name="city">Oslo</param></function>',
        returns=TOOL_RESPONSE,
        models=("minicpm5*",),
    ),
    Dialect(
        "bfcl_concise_xml",
        CallSyntax(FUNCTION, PARAMS, ("</function>", "</tool_call>", "</function_call>", "</tool_use>", "</tool>")),
        sample='<functions><function name="get_weather"><param name="city" type="string">Oslo</param></function>'
        "</functions>",
        wrap=(Wrap(("<functions>",), ("</functions>",)),),
        between="",
    ),
    Dialect(
        "bfcl_verbose_xml",
        CallSyntax(FUNCTION, PARAMS, ("</function>", "</tool_call>", "</function_call>", "</tool_use>", "</tool>")),
        sample='<functions><function name="get_weather"><params><param name="city" value="Oslo" type="string"/>'
        "</params></function></functions>",
        wrap=(Wrap(("<functions>",), ("</functions>",)),),
        between="",
    ),
    Dialect(
        "xai",
        CallSyntax(("<xai:function_call name={q}{name}{q}>",), INVOKE.body, ("</xai:function_call{junk}>",)),
        sample='<xai:function_call name="get_weather">\n<parameter name="city">Oslo</parameter>\n</xai:function_call>',
        models=("grok*",),
    ),
)
