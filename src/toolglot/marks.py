"""Marks that several families of dialects share."""

from __future__ import annotations

from toolglot.dialect import Manner, Region, Show, Wrap

TOOL_CALL = (
    Wrap(open=("<tool_call>",), close=("</tool_call>", "</tool_call{junk} >")),
    Wrap(
        open=(
            "<tool_call{junk} >",
            "<tool_call id={q}{id}{q}>",
            "<tool_call_{type} >{before_json}",
            "<tool_call{junk}{before_call}",
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

FUNCTIONS = Manner(open="<functions>", close="</functions>")
PYTHON_STUBS = Manner(Show.STUBS, "```python", "```")

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
    "<|assistant|>",
    "<|end_of_message|>",
    "<|message_sep|>",
    "</s>",
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
    "<|role_end|>",
    "<seed:eos>",
    "[|endofturn|]",
    "<|close|>message<|sep|>",
    "<|tool_call|>",
    "<function>",
)
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
    "<|start_header_id|>",
    "<|im_start|>",
    "<|tool_response>",
    "<|tool_response_start|>",
    "<start_function_response>",
    "<TOOL_RESPONSE>",
    "<|user|>",
)
