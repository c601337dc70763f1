"""Calls in a Markdown code fence.

    ```json
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    ```

A fence is ordinary text, so the tool must be known; a fence announced as an example stays text.
"""

from __future__ import annotations

from toolglot.dialects.codecs.json_envelope import LIST, OBJECT
from toolglot.dialects.codecs.named_call import PYTHON_CALL, QUOTED_CALL, SHOWN_CALL
from toolglot.dialects.codecs.shell import Shell
from toolglot.dialects.codecs.tagged_parameters import Parameter, TaggedParameters
from toolglot.dialects.codecs.whitespace import Trim
from toolglot.dialects.shared_marks import PYTHON_STUBS
from toolglot.dialects.spec import CallSyntax, Commitment, Dialect, Position, Wrap

CLOSE = ("```",)
JSON = Wrap(("```jsonc ", "```json ", "```JSON ", "```\n{before_json}"), CLOSE, Position.LINE, Commitment.TENTATIVE)
ACTION = Wrap(("Action: ```json ", "Action: {before_json}"), CLOSE, Position.LINE, Commitment.TENTATIVE)
TOOL_CODE = Wrap(
    (
        "```tool_code ",
        "```tool_call ",
        "```tool_calls ",
        "```tool_use ",
        "```function_call ",
        "```tool_json ",
        "```toolcall ",
        "```tool\n",
    ),
    CLOSE,
    Position.LINE,
    Commitment.TENTATIVE,
)
SHELL = Wrap(("```bash\n", "```sh\n", "```shell\n", "```zsh\n", "```console\n"), CLOSE, Position.LINE, Commitment.WHOLE)

PYTHON = Wrap(
    ("```python\n", "```py\n", "```Python\n", "```plaintext\n", "```text\n", "```\n"),
    CLOSE,
    Position.LINE,
    Commitment.ALONE,
)
_KINDS = ("Tool ", "tool ", "Tools ", "tools ", "Function ", "function ", "API ", "Tool_", "tool_", "function_")
_ANSWERS = ("Answer:", "Final answer:", "Final Answer:", "Response:", "Output:", "Assistant:", "ASSISTANT:")
_ACTS = ("Invoke:", "Calling:", "Execute:", "Tool:", "Function:")
LABELS = (
    *(f"{first}{second}:" for first in _KINDS for second in ("call", "calls")),
    *(f"**{first}{second}:**" for first in _KINDS for second in ("call", "calls")),
    *_ANSWERS,
    *_ACTS,
    "assistant\n",
    "{before_sole_python}",
    "[ [{before_python}",
)
"""Labels that models write before a call that is their whole answer."""
SOLE = (
    Wrap(LABELS, (), Position.START, Commitment.ALONE),
    *(
        Wrap((f"{opener}{{before_python}}",), (closer,), Position.START, Commitment.ALONE)
        for opener, closer in (("(", ")"), ("`", "`"), ("```", "```"), ("**", "**"))
    ),
)
"""Labels before, or delimiters around, such a call."""

LINES = TaggedParameters((Parameter("BEGIN_ARG: {key}", ("END_ARG: {key}", "END_ARG"), Trim.BREAK),))


def fenced(name: str, call: CallSyntax, wrap: Wrap, sample: str, *also: CallSyntax) -> Dialect:
    between = ", " if call is LIST else None
    return Dialect(name, call, sample, (wrap,), also, 0.95, Commitment.TENTATIVE, between=between)


DIALECTS = (
    fenced("fenced_json", OBJECT, JSON, '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'),
    fenced("fenced_tool_flat", OBJECT, TOOL_CODE, '```tool_code\n{"tool": "get_weather", "city": "Oslo"}\n```', LIST),
    fenced("bfcl_json", LIST, JSON, '```json\n[{"function": "get_weather", "parameters": {"city": "Oslo"}}]\n```'),
    fenced("langchain_json", OBJECT, JSON, '```json\n{"action": "get_weather", "action_input": {"city": "Oslo"}}\n```'),
    Dialect(
        "cohere_rplus",
        LIST,
        sample='Action:\n```json\n[{"tool_name": "get_weather", "parameters": {"city": "Oslo"}}]\n```',
        wrap=(ACTION,),
        also=(OBJECT,),
        confidence=0.95,
        commitment=Commitment.TENTATIVE,
        between=", ",
        teach=PYTHON_STUBS,
        returns="<results>\n{content}\n</results>",
    ),
    Dialect(
        "gemma_tool_code",
        PYTHON_CALL,
        sample='```tool_code\nprint(default_api.get_weather(city="Oslo"))\n```',
        wrap=(TOOL_CODE, Wrap(("<tool_code>",), ("</tool_code>",)), Wrap(("<ctrl42>call\n",))),
        confidence=0.95,
        commitment=Commitment.TENTATIVE,
        teach=PYTHON_STUBS,
        returns="```tool_output\n{content}\n```",
        models=("gemini*",),
    ),
    Dialect(
        "fenced_python",
        SHOWN_CALL,
        sample='```python\nget_weather(city="Oslo")\n```',
        wrap=(PYTHON, *SOLE, JSON),
        also=(QUOTED_CALL, LIST, OBJECT),
        confidence=0.95,
        commitment=Commitment.ALONE,
        between="\n",
        teach=PYTHON_STUBS,
        returns="```\n{content}\n```",
    ),
    Dialect(
        "shell_fence",
        CallSyntax(("{command}",), Shell(), position=Position.WRAPPED),
        sample="```bash\ngit status\n```",
        wrap=(SHELL,),
        confidence=0.8,
        commitment=Commitment.TENTATIVE,
    ),
    Dialect(
        "continue_block",
        CallSyntax(("TOOL_NAME: {name}\n",), LINES, position=Position.WRAPPED),
        sample="```tool\nTOOL_NAME: get_weather\nBEGIN_ARG: city\nOslo\nEND_ARG\n```",
        wrap=(TOOL_CODE,),
        commitment=Commitment.TENTATIVE,
    ),
)
