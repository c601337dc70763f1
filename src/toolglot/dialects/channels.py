"""Messages in channels, some of them addressed to a tool: harmony, Kimi K3, Inkling.

<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>
"""

from __future__ import annotations

from toolglot.codecs.envelope import OBJECT
from toolglot.codecs.markup import Markup, Parameter
from toolglot.codecs.named import Named
from toolglot.dialect import Call, Channel, Dialect, Manner, Place, Region, Show, Wrap

MESSAGE = "<|channel|>{words}to={name_id} {words}<|message|>"
CONSTRAINED = "<|channel|>{words}to={name_id} {words}<|constrain|>{words}<|message|>"
IN_ROLE = "<|start|>assistant to={name_id} {words}<|channel|>{words}<|message|>"

DIALECTS = (
    Dialect(
        "harmony",
        Call(
            (
                f"<|start|>assistant{CONSTRAINED}",
                f"<|start|>assistant{MESSAGE}",
                "<|start|>assistant to={name_id} {words}<|channel|>{words}<|constrain|>{words}<|message|>",
                IN_ROLE,
                "<|channel|>{words}to={name_id}<|channel|>{words}<|constrain|>{words}<|message|>",
                CONSTRAINED,
                MESSAGE,
            ),
            Named(),
            ("<|call|>", "<|end|>"),
        ),
        sample="<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "Oslo"}<|call|>',
        also=(
            # the special tokens were stripped on the way
            Call(
                (
                    "commentary to={name_id} {words}{before_object}",
                    "assistantcommentary to={name_id} {words}{before_object}",
                ),
                Named(),
                place=Place.LINE,
                repair="missing_marks",
            ),
        ),
        regions=(
            Region(
                ("<|start|>assistant<|channel|>analysis<|message|>", "<|channel|>analysis<|message|>"), ("<|end|>",)
            ),
            Region(
                (
                    "<|start|>assistant<|channel|>commentary<|message|>",
                    "<|start|>assistant<|channel|>final<|message|>",
                    "<|channel|>commentary<|message|>",
                    "<|channel|>final<|message|>",
                ),
                ("<|end|>", "<|return|>"),
                Channel.TEXT,
            ),
        ),
        results=("<|start|>functions.",),
        teach=Manner(Show.TYPES, "## functions\n\nnamespace functions {\n", "\n} // namespace functions"),
        models=("gpt-oss*",),
    ),
    Dialect(
        "kimi_k3",
        Call(
            (
                "<|open|> call tool={q}{name}{q}{attributes} <|sep|>",
                "<|open|> call{attributes} tool={q}{name}{q} <|sep|>",
                "<|open|> call name={q}{name}{q}{attributes} <|sep|>",
            ),
            Markup(
                (
                    Parameter(
                        "<|open|> argument key={q}{key}{q} type={q}{type}{q} <|sep|>",
                        ("<|close|> argument <|sep|>",),
                    ),
                    Parameter(
                        "<|open|> argument type={q}{type}{q} key={q}{key}{q} <|sep|>",
                        ("<|close|> argument <|sep|>",),
                    ),
                    Parameter("<|open|> argument key={q}{key}{q} <|sep|>", ("<|close|> argument <|sep|>",)),
                )
            ),
            ("<|close|> call <|sep|>",),
        ),
        sample='<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" '
        'type="string"<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
        wrap=(Wrap(("<|open|> tools <|sep|>",), ("<|close|> tools <|sep|>",)),),
        regions=(
            Region(("<|open|> think <|sep|>",), ("<|close|> think <|sep|>",)),
            Region(("<|open|> response <|sep|>",), ("<|close|> response <|sep|>",), Channel.TEXT),
        ),
        between="",
        teach=Manner(Show.ARRAY, "```json", "```"),
        models=("kimi-k3*",),
    ),
    Dialect(
        "inkling",
        OBJECT,
        sample='<|message_model|>get_weather<|content_invoke_tool_json|>{"name": "get_weather", "args": '
        '{"city": "Oslo"}}<|end_message|>',
        wrap=(
            Wrap(
                ("<|message_model|>{name}<|content_invoke_tool_json|>", "<|content_invoke_tool_json|>"),
                ("<|end_message|>",),
            ),
        ),
        regions=(
            Region(("<|message_model|> <|content_thinking|>",), ("<|end_message|>",)),
            Region(("<|message_model|> <|content_text|>",), ("<|end_message|>",), Channel.TEXT),
        ),
        models=("inkling*",),
    ),
)
