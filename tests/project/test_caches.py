"""Every cache of the project with its size and what it holds; a cache that is not listed here fails.

``lru_cache``, ``cache`` and ``TextCache`` are found in the source. Other bounded stores are listed by the constant
that bounds them. ``cached_property`` holds one value for each object and is not listed.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from support.source_tables import parse_source

SOURCE: Final = Path(__file__).resolve().parents[2] / "src" / "toolglot"
ALL: Final = None
"""The size of a cache without a limit: its keys are few and fixed."""

CACHES: Final[dict[str, tuple[int | None, str]]] = {
    "clients.volatile_lines:_rules_for": (256, "the rules for volatile lines that apply to an upstream"),
    "clients.xml.detection:_match_layouts": (64, "the client of a system prompt"),
    "clients.xml.detection:_teaching_phrases": (ALL, "the sentences that identify XML prompts"),
    "clients.xml.fenced_calls:_compile_opening": (64, "compiled patterns of a client"),
    "clients.xml.history_parser:_parse_answer": (512, "calls parsed from assistant messages"),
    "clients.xml.parsers:_compile_inside": (512, "compiled patterns of a tool"),
    "clients.xml.parsers:compile_openers": (64, "compiled patterns of opening tags"),
    "clients.xml.prompt_parser:_known_tools": (ALL, "the tools of all XML clients"),
    "clients.xml.prompt_parser:parse_prompt": (64, "tools parsed from a system prompt"),
    "clients.xml.session:load_context": (64, "the client, tools and prompt of a system prompt"),
    "clients.xml.text_escaping:_compile_tags": (16, "compiled patterns of a client"),
    "clients.xml.text_escaping:_tag_prefixes": (16, "the starts of a client's tags"),
    "clients.xml.value_encoding:_compile_entities": (16, "compiled patterns of an unescaping rule"),
    "clients.xml:all_clients": (ALL, "the XML client profiles"),
    "console.export:bundle": (ALL, "the script of exported sessions"),
    "console.static_files:load_assets": (ALL, "the assets of the console"),
    "console.static_files:make_import_map": (ALL, "names of the console's modules"),
    "console.static_files:make_page": (ALL, "the page of the console"),
    "console.static_files:page_headers": (ALL, "the headers of that page"),
    "config.settings:_pattern": (1024, "compiled patterns of model names"),
    "gateway.exchange:_find_address": (256, "addresses of requests"),
    "gateway.key_guesses:find_network": (1024, "the network of an address"),
    "config.upstreams:extend_url": (1024, "endpoint URLs"),
    "config.upstreams:_write_probe": (ALL, "a call in each dialect"),
    "config.upstreams:known_dialect": (1024, "the dialect of a model name"),
    "gateway.capabilities.profiles:_read_built_in": (ALL, "the built-in profiles"),
    "gateway.recovery.call_ids:_compile": (256, "compiled forms of call ids"),
    "gateway.recovery.edit_hints:_HINTS": (1 << 20, "nearest lines of failed edits (characters)"),
    "gateway.recovery.phrase_lists:load_signs": (ALL, "how languages are recognised"),
    "gateway.recovery.phrase_lists:load_language": (ALL, "the words of a language"),
    "core.call_patterns:_compile": (64, "compiled pattern settings"),
    "core.error_guide:load_guide": (ALL, "the guide to errors"),
    "core.options:make_options": (64, "checked reader options"),
    "core.provenance:_NORMAL_FORMS": (1 << 24, "normal forms of texts that may be quoted (characters)"),
    "core.provenance:_call_forms": (1024, "spellings of a call to a tool"),
    "core.provenance:_search_for": (64, "searches for quoted calls, by tool names"),
    "core.redaction:redact_printable": (1024, "redacted names and notes"),
    "core.schema.compile:_share_plain": (ALL, "types without constraints"),
    "core.schema.toolset:_strip_decoration": (1024, "simplified tool names"),
    "core.schema.toolset:compile_tool": (512, "compiled tools"),
    "core.schema.toolset:compile_tools": (64, "compiled tool sets"),
    "core.schema.validation:_compile_validator": (512, "validators of arguments"),
    "dialects.codecs.buffered_values:_compile_stop": (16, "compiled patterns of a quote"),
    "dialects.codecs.freetext:_choose": (16, "compiled end marks"),
    "dialects.codecs.member_keys:next_key": (64, "compiled patterns of the next key"),
    "dialects.codecs.named_call:_close_with": (64, "compiled closing marks"),
    "dialects.codecs.named_call:_end_with_call": (256, "compiled marks that end an object"),
    "dialects.codecs.object_members:_headers": (64, "compiled call headers"),
    "dialects.codecs.parameter_marks:_compile_value_marks": (1024, "compiled marks of a parameter"),
    "dialects.codecs.parameter_marks:value_marks": (1024, "compiled marks of a parameter and key"),
    "dialects.codecs.parameter_templates:parameter_template": (256, "templates from samples with marked parameters"),
    "dialects.codecs.sample_templates:_escape_code": (4096, "escape sequences of characters"),
    "dialects.codecs.sample_templates:sample_template": (256, "templates from samples with a list of members"),
    "dialects.codecs.streamed_strings:_plain": (32, "compiled patterns of plain string content"),
    "dialects.codecs.tagged_parameters:_call_marks": (1024, "compiled marks of a call"),
    "dialects.codecs.tagged_parameters:_headers": (256, "compiled call headers"),
    "dialects.mark_templates:_may_be_empty": (256, "whether a template node matches nothing"),
    "dialects.patterns:_compile_full": (1024, "compiled patterns of a mark"),
    "dialects.patterns:_compile_prefixes": (1024, "compiled patterns of partial marks"),
    "dialects.patterns:_compile_unnamed": (1024, "compiled patterns of several marks"),
    "dialects.patterns:_nodes_behind": (1024, "parsed mark templates"),
    "dialects.patterns:_outline_behind": (1024, "outlines of marks after their first character"),
    "dialects.patterns:_split": (1024, "literal starts of mark templates"),
    "dialects.patterns:mark": (1024, "marks by their spellings"),
    "dialects.records:all_dialects": (ALL, "the dialect records"),
    "dialects.streamed_arguments:spell_key": (1024, "argument keys as JSON"),
    "gateway.sessions.chain:_start_chain": (256, "keys of empty dialogs, by client"),
    "core.identity:_ARGUMENTS": (1 << 20, "hashes of arguments in their canonical form"),
    "gateway.prompt_stability:_write_tools": (64, "the tools of a request as text, to compare prompts"),
    "gateway.routing:_find_own_dialect": (256, "the dialect of a model name"),
    "gateway.telemetry.recorder:_format_second": (16, "timestamps"),
    "prompting.call_writer:_CALL_CACHE": (1 << 22, "written calls (characters)"),
    "prompting.call_writer:_LONG_CALL_CACHE": (1 << 24, "written calls with long arguments (characters)"),
    "prompting.call_writer:_all_read_back": (64, "whether written calls read back the same"),
    "prompting.call_writer:_find_wrapper": (128, "the text around a call in a dialect's sample"),
    "prompting.call_writer:_mark_words": (ALL, "words in the marks of all dialects"),
    "prompting.call_writer:can_name": (1024, "whether a dialect can call a tool name"),
    "prompting.call_writer:resolve_dialect": (256, "the record of a dialect or model name"),
    "prompting.conversation:_definition_text": (512, "tool definitions as text"),
    "prompting.conversation:_prepare": (64, "prompts of a tool set in a dialect"),
    "prompting.conversation:_split_template": (256, "parsed templates of tool results"),
    "prompting.example_turns:_make_turns": (16, "example turns of a tool set for guided models"),
    "prompting.few_shot:_prepare": (16, "prompts and examples of a tool set for small models"),
    "prompting.grammar.answer_schema:build_answer_schema": (16, "schemas of an answer with a call"),
    "prompting.grammar.call_shape:_split_sample": (ALL, "dialect samples, split at the arguments"),
    "prompting.grammar.gbnf:build_grammar": (16, "grammars of a tool set in a dialect"),
    "prompting.grammar.gbnf:build_text_grammar": (16, "grammars of a tool set in a dialect"),
    "prompting.grammar.structural_tag:build_structural_tag": (16, "structural tags of a tool set in a dialect"),
    "prompting.past_answers:_compile_results": (ALL, "compiled marks of results"),
    "prompting.mark_escaping:_compile_marks": (ALL, "compiled marks of all dialects"),
    "prompting.mark_escaping:_compile_own_marks": (ALL, "compiled closing marks of a dialect"),
    "prompting.mark_escaping:_list_marks": (ALL, "marks that are escaped"),
    "prompting.mark_escaping:get_mark_escaper": (64, "mark escapers of a dialect and tool names"),
    "prompting.named_calls:_compile": (16, "compiled escaping rules"),
    "prompting.tool_prompt:_build": (64, "prompts of a tool set"),
    "reading.dialect_index:_find_by_model": (256, "the dialect of a model name"),
    "reading.dialect_index:self._tool_sets": (64, "landmarks of a tool set"),
    "reading.dialect_index:self.commitment": (1024, "the marks that commit to a dialect"),
    "reading.dialect_index:self.select": (4096, "the dialects that a mark may start"),
    "reading.example_detection:_load_phrases": (ALL, "phrases before calls that may be shown"),
    "reading.example_detection:_phrases": (ALL, "these phrases as compiled expressions, by role"),
    "reading.missed_calls:_compile_keys": (256, "patterns of the parameters of a tool"),
    "reading.missed_calls:_compile_names": (64, "patterns of the names of a tool set"),
    "reading.plugins:known_dialects": (ALL, "the dialect records, with those of other packages"),
    "reading.plugins:list_call_marks": (ALL, "the opening marks of dialects whose quoted calls look unlike all others"),
    "reading.reader:dialect_index": (ALL, "the index of all dialects"),
    "server.admission:check_origin": (256, "accepted Host and Origin headers"),
    "server.app:normalize_path": (256, "request paths without a repeated prefix"),
    "server.http_request:format_head_start": (64, "starts of response heads"),
    "server.http_request:split_target": (256, "parsed request targets"),
    "server.upstream.connection:_media_type": (64, "parsed Content-Type headers"),
    "server.upstream.pool:format_head_start": (64, "starts of request heads"),
    "sim.prompt_parsers:find_tools": (64, "tools parsed from a prompt"),
    "sim.prompt_reading:_forms": (ALL, "call templates of all dialects"),
    "sim.prompt_reading:_result_patterns": (ALL, "compiled patterns of tool results"),
    "sim.prompt_reading:detect_dialect": (64, "the dialect of a prompt"),
    "store.migrations:_load": (ALL, "the statements of the store's migrations, by engine"),
    "store.operations:_write_find_latest": (16, "SQL that finds a number of nodes"),
    "store.sql:_adapt": (512, "SQL of an engine"),
    "store.sql:_find_reader": (64, "how rows are read in the order of their columns"),
    "store.sql:_write_insert": (256, "SQL that inserts a number of rows"),
    "wires.gemini.field_names:_snake": (256, "field names in snake case"),
    "wires.json_fields:_read_large_once": (4, "parsed large tool lists"),
    "wires.json_fields:_read_once": (64, "parsed tool lists"),
    "wires:all_wires": (ALL, "the wires"),
    "wires:client_wires": (ALL, "the wires of clients"),
}

STORES: Final[dict[str, tuple[float, str]]] = {
    "config.settings:REMEMBERED": (1000, "models and upstreams by requested name; cleared when full"),
    "core.provenance:MAX_SEARCHED": (1 << 14, "hashes of texts and whether they hold call markup; cleared when full"),
    "core.schema.toolset:_MAX_COMPILED": (64, "compiled tool sets of the library; cleared when full"),
    "gateway.capabilities.learned:MAX_ENTRIES": (1000, "learned failures, and leak counts; the oldest are dropped"),
    "gateway.routing:MAX_CACHED_RULES": (512, "discovered facts and rules by upstream and model; cleared when full"),
    "gateway.sessions.conversation_state:MEMORY_BYTES": (32 << 20, "modes and prompts of conversations; the oldest go"),
    "gateway.sessions.conversation_state:MAX_PROMPT": (4 << 20, "bytes of a prompt that is kept"),
    "gateway.sessions.ttl_store:MOST_BYTES": (
        64 << 20,
        "signatures and responses of clients (bytes); least recently used",
    ),
    "gateway.sessions.ttl_store:SECONDS": (14400, "their time to live (seconds)"),
    "gateway.telemetry.metrics:KNOWN": (1000, "raw label values of each metric; further ones are looked up again"),
    "gateway.telemetry.metrics:LABELS": (100, "values of each label; further ones are counted as other"),
    "prompting.mark_escaping:_MOST_POSITIONS": (1 << 19, "positions of marks in all texts; cleared when full"),
    "prompting.mark_escaping:_MOST_TEXTS": (1 << 14, "texts with known positions of marks; cleared when full"),
    "server.app:TOKENS_AT_ONCE": (256, "random tokens made in advance"),
    "server.upstream.discovery:FACTS_TTL": (600, "time to live of discovered facts (seconds)"),
    "server.upstream.pool:KEEP_ALIVE": (4, "time to live of idle connections (seconds)"),
}
"""Bounded stores, by the constant that bounds them."""


def test_every_cache_is_listed_with_its_size() -> None:
    found = dict(sorted(find_caches()))
    listed = {name: size for name, (size, _) in CACHES.items()}
    assert found == listed, f"not listed: {found.keys() - listed.keys()}; gone: {listed.keys() - found.keys()}"


def test_every_bounded_store_has_the_listed_size() -> None:
    found = {name: _constant(*name.split(":")) for name in STORES}
    assert found == {name: size for name, (size, _) in STORES.items()}


def find_caches() -> Iterator[tuple[str, int | None]]:
    """The caches in the source, as ``module:name``, with their sizes."""
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(parse_source(path)):
            for name, made in _find_made(node):
                yield f"{module}:{name}", _read_size(made, module)


def _find_made(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The expressions in a node that make a cache, and the names of the caches."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from ((node.name, made) for made in node.decorator_list if _name(made) in ("cache", "lru_cache"))
    if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        made = node.value.func if isinstance(node.value.func, ast.Call) else node.value
        if _name(made) in ("cache", "lru_cache", "TextCache"):
            yield ast.unparse(target), made


def _name(made: ast.expr) -> str:
    called = made.func if isinstance(made, ast.Call) else made
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _read_size(made: ast.expr, module: str) -> int | None:
    if not isinstance(made, ast.Call):
        assert _name(made) == "cache", f"{module}: give lru_cache a maxsize"
        return None
    size = ast.unparse(made.args[0] if made.args else made.keywords[0].value)
    value = eval(size, vars(importlib.import_module(f"toolglot.{module}")))
    assert isinstance(value, int), f"{module}: a cache needs a size"
    return value


def _constant(module: str, name: str) -> object:
    return getattr(importlib.import_module(f"toolglot.{module}"), name)
