"""Marks that several families of dialects share."""

from __future__ import annotations

from toolglot.dialects.spec import Region, ToolListing, ToolPromptStyle, Wrap

TOOL_CALL = (
    Wrap(open=("<tool_call>",), close=("</tool_call>", "</tool_call{junk} >")),
    Wrap(
        open=(
            "<tool_call{junk} >",
            "<tool_call id={q}{id}{q}>",
            "<tool_call_{type} >{before_json}",
            "<tool_call{junk}{before_call}",
            "< tool_call >",
        ),
        close=("</tool_call{junk} >", "</tool_call_{type} >"),
        repair="damaged_opener",
    ),
)
TOOL_CALLS = Wrap(
    open=("<tool_calls>", "<tool_use>", "<use_tool>", "<toolcall>", "<minimax:toolcall>"),
    close=("</tool_calls>", "</tool_use>", "</use_tool>", "</toolcall>", "</minimax:toolcall>"),
)
FUNCTION_CALLS = Wrap(open=("<{ns}function_calls>",), close=("</{ns}function_calls>",))
TOOL_CALL_TOKENS = Wrap(open=("<|tool_call_start|>",), close=("<|tool_call_end|>",))
PYTHON_TAG = Wrap(open=("<|python_tag|>",))

TOOL_RESPONSE = "<tool_response>\n{content}\n</tool_response>"
FUNCTION_RESULTS = (
    "<function_results>\n<result>\n<tool_name>{name}</tool_name>\n<stdout>\n{content}\n</stdout>\n</result>\n"
    "</function_results>"
)

FUNCTIONS = ToolPromptStyle(open="<functions>", close="</functions>")
PYTHON_STUBS = ToolPromptStyle(ToolListing.STUBS, "```python", "```")

THINK = Region(
    open=("<think{suffix}>", "<thinking>", "<thought>", "<reasoning>", "<scratch_pad>"),
    close=("</think{suffix}>", "</thinking>", "</thought>", "</reasoning>", "</scratch_pad>"),
)

TURN_ENDS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|eom|>",
    "<|eot|>",
    "<end_of_turn>",
    "<|end_of_message|>",
    "<|message_sep|>",
    "[e~[",
    "<turn|>",
    "<eos>",
    "<bos>",
    "[EOS]",
    "<|end_of_text|>",
    "<|EOT|>",
    "<|end_of_msg|>",
    "<|end_of_sentence|>",
    "<|endofassistant|>",
    "<|assistant_end|>",
    "<|role_end|>",
    "<|END_OF_TURN_TOKEN|>",
    "<{bar}end{gap}of{gap}sentence{bar}>",
    "<seed:eos>",
    "[|endofturn|]",
    "<|close|>message<|sep|>",
)

_ROLES = (
    ("<|im_start|>", ""),
    ("<|start_header_id|>", "<|end_header_id|>"),
    ("<|header_start|>", "<|header_end|>"),
    ("<|start_of_role|>", "<|end_of_role|>"),
    ("<start_of_turn>", ""),
    ("<|turn>", ""),
    ("<seed:bos>", ""),
    ("<|BOT|>", ""),
)
"""Marks before and after the role at the start of a turn, in chat templates."""

OWN_TURNS = (
    *(f"{opener} {{own_role}} {end}" for opener, end in _ROLES if end),
    "<|im_start|> {own_role} <|im_sep|>",
    *(f"{opener} {{own_role}}" for opener, _ in _ROLES),
    *(f"{opener}{{before_own_text}}" for opener, _ in _ROLES),
    "<|assistant|>",
    "<{bar}Assistant{bar}>",
    "<|START_OF_TURN_TOKEN|> <|CHATBOT_TOKEN|>",
    "<|im_assistant|> assistant <|im_middle|>",
    "<|im_assistant|>",
    "<|im_sep|>",
    "[|assistant|]",
    "<|assistant_start|>",
    "<|bom|>",
    "<|begin_of_text|>",
    "<|startoftext|>",
    "<{bar}begin{gap}of{gap}sentence{bar}>",
    '<|open|>message role="assistant"<|sep|>',
)
"""Marks that begin a turn or answer of the model itself: meaningless around a call."""

STRAY_TURNS = (
    "]~b]ai",
    "assistant\n{before_mark}",
    "[/INST]",
    "</s>",
    "<s>",
    "<|tool_call|>",
    "<function>{before_break}",
)
"""Marks that are meaningless right after a call, and ordinary text elsewhere."""

STRAY_ENDS = ("</think>", "</function>", "</parameter>", "</invoke>", "</arguments>")

TURN_STARTS = (
    "<tool_response>",
    "<tool_result>",
    "<tool_results>",
    "<tool_output>",
    "<result> <name>",
    "```tool_output",
    "<function_results>",
    "<function_result>",
    "<function_response>",
    "<|observation|>",
    "<|tool_response>",
    "<|tool_response_start|>",
    "<start_function_response>",
    "<TOOL_RESPONSE>",
    *(opener for opener, _ in _ROLES),
    "<|user|>",
    "<|tool|>",
    "<{bar}User{bar}>",
    "<|START_OF_TURN_TOKEN|>",
    "<|im_user|>",
    "<|im_system|>",
    "[|user|]",
    "[|tool|]",
    "]~b]",
    "[INST]",
    "<|user_start|>",
    "user<|role_sep|>",
    "function result<|role_sep|>",
    "<|start|>user",
)
