"""Constrained decoding: what a server needs so that the model can write nothing but valid calls.

    call_shape        the sample of a dialect, split into the text around the arguments
    rules             rules of a grammar: JSON values by schema, and text without certain marks
    gbnf              the grammar of an answer, for llama.cpp
    structural_tag    the structural tag of an answer, for servers with xgrammar
    answer_schema     the JSON Schema of an answer that is one call, for servers with nothing else

Strategy. The sample of a dialect is one call, ``get_weather`` with ``city`` Oslo. Splitting it at these three
words leaves the marks; with other names and a rule for the value, the sample becomes the grammar of any call. So what
is built here always writes what the sample shows, and a dialect whose sample cannot be split this way has neither
grammar nor tag (``None``). Values follow the compiled schema of the tool; required parameters come first, in the order
of declaration, because a model in the middle of a call no longer weighs what to write.

GBNF is also the notation that xgrammar reads, so the rules for arguments exist once.
"""
