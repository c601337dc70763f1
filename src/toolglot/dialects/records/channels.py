"""Messages in channels; a message addressed to a tool is a call: harmony (gpt-oss), Kimi K3, Inkling.

<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>
"""

from __future__ import annotations

import re

from msgspec import structs

from toolglot.dialects.codecs.freetext import Enclosed
from toolglot.dialects.codecs.json_envelope import OBJECT
from toolglot.dialects.codecs.message_calls import MessageCalls
from toolglot.dialects.codecs.tagged_parameters import Parameter, TaggedParameters, Trim
from toolglot.dialects.spec import (
    CallSyntax,
    Channel,
    Commitment,
    Dialect,
    Position,
    Region,
    ToolListing,
    ToolPromptStyle,
    Wrap,
)

START = "<|start|> assistant{again}"
MESSAGE = "<|channel|>{words}to={recipient} {words}<|message|>"
CONSTRAINED = "<|channel|>{words}to={recipient} {words}<|constrain|>{words}<|message|>"
DOUBLED = "<|channel|>{words}to={recipient}<|channel|>{words}<|constrain|>{words}<|message|>"
RECIPIENT_FIRST = "to={recipient} {words}<|channel|>{words}{constraint}<|message|>"
RECIPIENT_LAST = "<|channel|>{words}<|constrain|>{words}to={recipient}{words}<|message|>"
ADDRESSED = (
    f"{START}{CONSTRAINED}",
    f"{START}{MESSAGE}",
    f"{START} {RECIPIENT_FIRST}",
    DOUBLED,
    CONSTRAINED,
    MESSAGE,
)
# the prompt ended with the role, or <|start|> was stripped
WITHOUT_START = (
    f"assistant{CONSTRAINED}",
    f"assistant{MESSAGE}",
    f"assistant {RECIPIENT_FIRST}",
    f"assistant{RECIPIENT_LAST}",
    "assistant to={recipient}{debris}<|constrain|>{words}<|message|>",
    "assistant to={recipient}{debris}<|message|>{before_object}",
    "commentary to={recipient}{debris}{constraint}<|message|>",
    "analysis to={recipient}{debris}{constraint}<|message|>",
    "to={recipient}{debris}<|constrain|>{words}<|message|>",
    "to={recipient}{debris}<|message|>{before_object}",
)
DAMAGED = (
    f"{START}{DOUBLED}",
    # something else instead of the channel
    f"{START}<|channel|>{{words}}{CONSTRAINED}",
    f"{START}<|channel|>{{words}}{MESSAGE}",
    # the recipient after the content type
    f"{START}{RECIPIENT_LAST}",
    RECIPIENT_LAST,
    # no <|channel|>
    f"{START}{{debris}}to={{recipient}}{{debris}}<|constrain|>{{words}}<|message|>",
    f"{START}{{debris}}to={{recipient}}{{debris}}<|message|>{{before_object}}",
    # no <|message|>
    f"{START}<|channel|>{{words}}to={{recipient}} {{words}}<|constrain|>{{language}} {{before_object}}",
    "<|channel|>{words}to={recipient} {words}<|constrain|>{language} {before_object}",
)
STRIPPED = (
    "commentary to={name_id}{debris}{before_object}",
    "assistant commentary to={name_id}{debris}{before_object}",
    "assistant to={name_id}{debris}{before_object}",
    "assistant analysis to=functions.{name_id}{debris}{before_object}",
    "analysis to=functions.{name_id}{debris}{before_object}",
    "to=functions.{name_id}{debris}{before_object}",
    " to=functions.{name_id}{debris}{before_object}",
    "to={name_parallel}{debris}{before_object}",
)
KIND = re.compile(r"[\s>](?!(?i:json|analysis|commentary|final)\b)\w+ ?<\|message\|>\Z")
"""A content type other than JSON in the header of a message."""
CLOSE = ("<|call|>", "<|end|>", "] <|call|>")

ELEMENTS = CallSyntax(
    tuple(f"{header}{{before_rfl}}" for header in ADDRESSED),
    TaggedParameters((Parameter("<rfl:parameter name={q}{key}{q}>", ("</rfl:parameter>",), Trim.BREAK),)),
    CLOSE,
)
"""Elements instead of JSON in the same frames."""


def open_message(channel: str) -> tuple[str, ...]:
    """Headers of a message without recipient, complete or with parts missing."""
    return (
        f"{START}<|channel|>{channel}{{constraint}}<|message|>",
        f"{START}{channel}<|message|>",
        f"<|channel|>{channel}{{constraint}}<|message|>",
        f"assistant<|channel|>{channel}{{constraint}}<|message|>",
    )


def open_next(channel: str) -> tuple[str, ...]:
    """The same right after another message whose header was not seen."""
    return (f"<|end|> {START}<|channel|>{channel}{{constraint}}<|message|>",)


DIALECTS = (
    # before harmony, whose frames it has
    Dialect(
        "beam",
        ELEMENTS,
        sample="<|start|>assistant to=get_weather<|channel|>analysis <|constrain|>xml<|message|>"
        '<rfl:parameter name="city">\nOslo\n</rfl:parameter><|call|>',
        also=(structs.replace(ELEMENTS, header=(f"{RECIPIENT_FIRST}{{before_rfl}}",), position=Position.LINE),),
        models=("beam*",),
    ),
    Dialect(
        "harmony",
        CallSyntax(ADDRESSED, MessageCalls(), CLOSE),
        sample="<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "Oslo"}<|call|>',
        also=(
            # code, a patch or a command, verbatim
            CallSyntax(ADDRESSED, Enclosed("<|call|>{before_turn}", KIND)),
            CallSyntax(DAMAGED, MessageCalls(), CLOSE, repair="damaged_header"),
            CallSyntax((RECIPIENT_FIRST,), MessageCalls(), CLOSE, Position.LINE),
            CallSyntax(WITHOUT_START, MessageCalls(), CLOSE, Position.LINE, "damaged_header"),
            # the special tokens were stripped by the server
            CallSyntax(STRIPPED, MessageCalls(), position=Position.LINE, repair="missing_marks"),
            CallSyntax(
                ("+#+#+#+#+#+assistant to={name_id}{debris}{before_object}",), MessageCalls(), repair="missing_marks"
            ),
        ),
        regions=(
            # the first message begins with its channel if the prompt ended with <|channel|>
            Region(
                (*open_message(" analysis{debris}"), "analysis{debris}<|message|>"),
                ("<|end|>",),
                commitment=Commitment.MARKED,
            ),
            Region(
                open_next(" analysis{debris}"), ("<|end|>",), position=Position.ANYWHERE, commitment=Commitment.MARKED
            ),
            # a header without <|message|>: its content is treated as reasoning
            Region(
                (
                    f"{START}<|channel|>{{before_stray_end}}",
                    "<|channel|>{before_stray_end}",
                    "<|channel|>{words}to=assistant<|channel|>{before_stray_end}",
                ),
                ("<|end|>",),
                commitment=Commitment.MARKED,
            ),
            Region(
                (
                    *open_message("{debris}"),
                    "final{debris}{constraint}<|message|>",
                    "commentary{debris}<|message|>",
                ),
                ("<|end|>", "<|return|>"),
                Channel.MESSAGE,
            ),
            Region(
                open_next("{debris}"),
                ("<|end|>", "<|return|>"),
                Channel.MESSAGE,
                Position.ANYWHERE,
            ),
        ),
        results=("<|start|> functions.",),
        teach=ToolPromptStyle(
            ToolListing.TYPES, "## functions\n\nnamespace functions {\n", "\n} // namespace functions"
        ),
        models=("gpt-oss*", "llm-jp-4*"),
    ),
    Dialect(
        "kimi_k3",
        CallSyntax(
            (
                "<|open|> call tool={q}{name}{q}{attributes} <|sep|>",
                "<|open|> call{attributes} tool={q}{name}{q} <|sep|>",
                "<|open|> call name={q}{name}{q}{attributes} <|sep|>",
            ),
            TaggedParameters(
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
            Region(("<|open|> response <|sep|>",), ("<|close|> response <|sep|>",), Channel.MESSAGE),
        ),
        between="",
        teach=ToolPromptStyle(ToolListing.ARRAY, "```json", "```"),
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
            Region(("<|message_model|> <|content_text|>",), ("<|end_message|>",), Channel.MESSAGE),
        ),
        models=("inkling*",),
    ),
)
