"""How models drift from the form of a single dialect: replacements in a written call, as data.

Each drift has the dialects it belongs to and its replacements in turn, each a regular expression and what takes its
place. A drift of another dialect, or one that finds nothing, leaves the text as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drift:
    """``about`` says what is wrong; ``count`` limits how often each replacement is made (0: everywhere)."""

    about: str
    dialects: frozenset[str]
    replacements: tuple[tuple[re.Pattern[str], str], ...]
    count: int = 0


def _drift(about: str, dialects: str, *replacements: tuple[str, str], count: int = 0) -> Drift:
    compiled = tuple((re.compile(pattern, re.S), put) for pattern, put in replacements)
    return Drift(about, frozenset(dialects.split()), compiled, count)


DRIFTS: Mapping[str, Drift] = {
    "lost_wrapper": _drift(
        "the marks around the call are missing",
        "qwen3_coder anthropic dsml_v4 minimax_m2 deepseek_v31 kimi_k2 functools",
        (r"</?(?:tool_call|function_calls|minimax:tool_call|｜DSML｜tool_calls)>\n?", ""),
        (r"<｜tool▁calls▁(?:begin|end)｜>|<\|tool_calls_section_(?:begin|end)\|>|\Afunctools", ""),
    ),
    "lost_wrapper_opener": _drift(
        "the opening mark around the call is missing",
        "qwen3_coder anthropic dsml_v4 minimax_m2",
        (r"\A<(?:tool_call|function_calls|minimax:tool_call|｜DSML｜tool_calls)>\n", ""),
    ),
    "lost_value_closers": _drift(
        "no value is closed",
        "qwen3_coder glm45 minimax_m2 anthropic dsml_v4",
        (r"\n?</(?:parameter|arg_value|｜DSML｜parameter)>", ""),
    ),
    "lost_value_closer": _drift(
        "the first value is not closed",
        "qwen3_coder glm45 minimax_m2 anthropic dsml_v4",
        (r"\n?</(?:parameter|arg_value|｜DSML｜parameter)>", ""),
        count=1,
    ),
    "lost_call_closer": _drift(
        "the closing mark of the call is missing",
        "qwen3_coder minimax_m2 anthropic dsml_v4 kimi_k2 deepseek_v31 harmony pythonic lfm2 functools mistral_array",
        (
            r"</(?:function|invoke|｜DSML｜invoke)>\n|<\|tool_call_end\|>|<｜tool▁call▁end｜>|<\|call\|>|\](?=\Z|<\|)",
            "",
        ),
    ),
    "stray_call_closer": _drift(
        "the closing mark of the call is written twice",
        "qwen3_coder minimax_m2 anthropic gemma4",
        (r"(</function>\n|</invoke>\n|<tool_call\|>)", r"\1\1"),
    ),
    "stray_value_closer": _drift(
        "the closing mark of the last value is written twice",
        "qwen3_coder",
        (r"</parameter>\n(?=</function>)", "</parameter>\n</parameter>\n"),
    ),
    "tags_for_parameters": _drift(
        "parameters are tags of their own name",
        "qwen3_coder",
        (r"<parameter=(\w+)>\n(.*?)\n</parameter>", r"<\1>\2</\1>"),
    ),
    "name_as_value": _drift(
        "the name of a parameter stands in its tag, the value behind it",
        "qwen3_coder",
        (r"<parameter=(\w+)>\n(.*?)\n</parameter>", r"<parameter>\1</parameter>\2"),
    ),
    "value_in_opener": _drift(
        "the value stands in the opening mark of the parameter",
        "qwen3_coder",
        (r"<parameter=(\w+)>\n(.*?)\n</parameter>", r"<parameter=\1=\2</parameter>"),
    ),
    "lost_less_than": _drift("a parameter has lost its <", "qwen3_coder", (r"<parameter=", "parameter="), count=1),
    "lost_greater_than": _drift("a parameter has lost its >", "qwen3_coder", (r"(<parameter=\w+)>", r"\1"), count=1),
    "keys_then_values": _drift(
        "the key of the second value stands before the first value",
        "glm45",
        (
            r"(<arg_key>\w+</arg_key>\n)(<arg_value>.*?</arg_value>\n)(<arg_key>\w+</arg_key>\n)",
            r"\1\3\2",
        ),
        count=1,
    ),
    "tool_as_parameter": _drift(
        "the tool is opened as a parameter", "qwen3_coder", (r"<function=([\w.-]+)>", r"<parameter=\1>")
    ),
    "other_value_closer": _drift(
        "a value is closed by another mark", "roo_xml", (r"</(path|command|content|text)>", r"</\1line>"), count=1
    ),
    "quoted_marks": _drift("the marks have a stray quote", "hermes qwen3_coder", ("(</?tool_call)>", r'\1">')),
    "numbered_marks": _drift("the marks have a number", "hermes", ("(</?tool_call)>", r"\1_id_7>")),
    "equals_for_angle": _drift("the mark ends with =", "hermes", (r"<tool_call>\n", "<tool_call=")),
    "broken_marks": _drift("the marks are broken by a line end", "hermes", ("(</?tool_call)>", "\\1\n>")),
    "ascii_bars": _drift("the bars of the marks are ASCII", "dsml_v4 deepseek_v31", ("｜", "|")),
    "double_bars": _drift("the bars of the marks are written twice", "dsml_v4", ("｜", "｜｜")),
    "all_strings": _drift("every value is declared a string", "dsml_v4", ('string="false"', 'string="true"')),
    "singular_section": _drift(
        "the marks of the section are singular", "kimi_k2", ("tool_calls_section", "tool_call_section")
    ),
    "spaced_marks": _drift(
        "there are blanks between the marks", "kimi_k2 deepseek_v31", (r"(<[|｜][^|｜<>]+[|｜]>)", r" \1 ")
    ),
    "bare_counter": _drift("the id of the call is a number without a name", "kimi_k2", (r"functions\.[\w.-]+:0", "0")),
    "renamed_wrapper": _drift(
        "the marks around the call are those of another dialect",
        "minimax_m2 anthropic",
        (r"(</?)(?:minimax:tool_call|function_calls)>", r"\1tool_calls>"),
    ),
    "unquoted_names": _drift("names are not quoted", "minimax_m2 anthropic dsml_v4", (r'name="([\w.-]+)"', r"name=\1")),
    "other_namespace": _drift(
        "the marks have a namespace that is not theirs",
        "anthropic minimax_m2",
        (r"(</?)(invoke|parameter)\b", r"\1ns:\2"),
    ),
    "dashes_in_header": _drift("dashes in the header", "harmony", ("commentary", "––commentary")),
    "other_constraint": _drift(
        "the header constrains to something else", "harmony", (r"<\|constrain\|>json", "<|constrain|>response")
    ),
    "recipient_in_role": _drift(
        "the recipient stands in the role",
        "harmony",
        (r"assistant<\|channel\|>commentary to=(\S+) ", r"assistant to=\1<|channel|>commentary "),
    ),
    "json_quotes": _drift("strings have the quotes of JSON", "gemma4", (r'<\|"\|>', '"')),
    "lost_quotes": _drift("strings have no quotes", "gemma4", (r'<\|"\|>', "")),
    "parentheses": _drift(
        "parentheses stand for braces", "gemma4", (r"(call:[\w.-]+)\{", r"\1("), (r"\}(?=<tool_call\|>)", ")")
    ),
    "bare_opener": _drift(
        "the opening mark is missing", "gemma4 lfm2", (r"\A(?:<\|tool_call>|<\|tool_call_start\|>)", "")
    ),
    "lost_args_mark": _drift("the mark before the arguments is missing", "mistral_args", (r"\[ARGS\]", "")),
    "type_field": _drift(
        "the call has a type", "llama3_json hermes bare_json", (r'\{"name"', '{"type": "function", "name"'), count=1
    ),
    "lost_tag": _drift("the mark before the call is missing", "llama3_json", (r"\A<\|python_tag\|>", "")),
    "body_after_end": _drift(
        "the list is repeated behind its end", "lfm2", (r"(\[.*\])(<\|tool_call_end\|>)", r"\1\2\1")
    ),
}
"""Every drift by name."""


def apply_drift(name: str, dialect: str, written: str) -> str:
    """Apply a drift to a written call."""
    drift = DRIFTS[name]
    if dialect not in drift.dialects:
        return written
    for pattern, put in drift.replacements:
        written = pattern.sub(put, written, count=drift.count)
    return written
