"""Cline's XML core: version 3.89, the later versions that went back to it, and the legacy half of 4.1.

    <replace_in_file>
    <path>src/app.ts</path>
    <diff>
    ------- SEARCH
    old
    =======
    new
    +++++++ REPLACE
    </diff>
    </replace_in_file>

Every value is trimmed. Files and diffs are un-escaped unless the model id contains ``claude``, except files that end in
``.xml``; and U+FFFD is deleted from them. That makes it the only escape character: at the end of a file it protects the
last line break.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from toolglot.clients.xml import roo_tools as roo
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.parsers import TagGrammar, parse_cline
from toolglot.clients.xml.profile import (
    ArgumentLimits,
    ClientParameter,
    ClientTool,
    ContentRewrite,
    PromptLayout,
    Tolerance,
    Unescaping,
    ValueKind,
)

_ENTITIES = (("&gt;", ">"), ("&lt;", "<"), ("&quot;", '"'), ("&amp;", "&"), ("&apos;", "'"))
_UNLESS_CLAUDE = Unescaping(_ENTITIES, deleted="\ufffd", unless="claude", raw_suffixes=(".xml",))
_ONLY_GEMINI = Unescaping(_ENTITIES, deleted="\ufffd", only="gemini")

_CONTENT = replace(
    roo.CONTENT,
    tolerance=Tolerance.TAIL,
    unescaping=_UNLESS_CLAUDE,
    rewrites=(ContentRewrite.FENCES_TRIMMED, ContentRewrite.BYTE_ORDER_MARK),
)
_PROGRESS = ClientParameter(
    "task_progress", "Checklist of the task.", required=False, kind=ValueKind.BLOCK, tolerance=Tolerance.PROSE
)

_OPTIONS = ClientParameter(
    "options",
    "Two to five answers to choose from.",
    required=False,
    kind=ValueKind.LIST,
    aliases=("suggestions", "follow_up"),
)


def _define(
    name: str, description: str, parameters: Iterable[ClientParameter], forms: tuple[tuple[str, ...], ...] = ()
) -> ClientTool:
    return ClientTool(name, description, (*parameters, _PROGRESS), alternatives=forms)


def _prose(name: str, description: str, required: bool = True) -> ClientParameter:
    return ClientParameter(name, description, required, ValueKind.BLOCK, Tolerance.PROSE)


_TOOLS = (
    _define(
        "execute_command",
        "Runs a command in the user's shell.",
        (
            ClientParameter("command", "The command.", unescaping=_ONLY_GEMINI, aliases=("cmd",)),
            ClientParameter(
                "requires_approval",
                "Whether the user must be asked first.",
                kind=ValueKind.FLAG,
                default="true",
            ),
            ClientParameter("timeout", "Seconds to wait for it.", required=False, kind=ValueKind.NUMBER),
        ),
    ),
    _define("read_file", "Reads a file.", (roo.PATH, roo.START, roo.END)),
    _define(
        "write_to_file",
        "Writes a file, new or over the old one.",
        (
            replace(roo.PATH, aliases=(*roo.PATH.aliases, "absolutePath")),
            _CONTENT,
        ),
        (("absolutePath", "content"),),
    ),
    _define(
        "replace_in_file",
        "Changes parts of a file by search and replace blocks.",
        (roo.PATH, replace(roo.DIFF, unescaping=_UNLESS_CLAUDE)),
        (("absolutePath", "diff"),),
    ),
    _define("search_files", "Searches files with a regular expression.", (roo.FOLDER, roo.REGEX, roo.FILE_PATTERN)),
    _define("list_files", "Lists files and directories.", (roo.FOLDER, roo.RECURSIVE)),
    _define(
        "list_code_definition_names",
        "Lists the names that are defined in the files of a directory.",
        roo.LIST_DEFINITIONS.parameters,
    ),
    _define(
        "browser_action",
        "Does one thing in a browser.",
        (
            ClientParameter("action", "launch, click, type, scroll_down, scroll_up or close."),
            ClientParameter("url", "Address to open.", required=False),
            ClientParameter("coordinate", "Where, as x,y.", required=False),
            ClientParameter("text", "Text to type.", required=False, tolerance=Tolerance.EXACT),
        ),
    ),
    _define(
        "web_fetch",
        "Reads a page.",
        (ClientParameter("url", "Its address."), ClientParameter("prompt", "What to look for.")),
    ),
    _define(
        "web_search",
        "Searches the web.",
        (
            ClientParameter("query", "What to search for."),
            ClientParameter("allowed_domains", "Only these domains.", required=False, kind=ValueKind.LIST),
            ClientParameter("blocked_domains", "Not these domains.", required=False, kind=ValueKind.LIST),
        ),
    ),
    _define("use_mcp_tool", roo.USE_MCP_TOOL.description, roo.USE_MCP_TOOL.parameters),
    _define("access_mcp_resource", roo.ACCESS_MCP_RESOURCE.description, roo.ACCESS_MCP_RESOURCE.parameters),
    _define(
        "ask_followup_question",
        "Asks the user a question.",
        (
            roo.QUESTION,
            _OPTIONS,
        ),
    ),
    _define(
        "attempt_completion",
        "Ends the task and tells its result.",
        (roo.RESULT, ClientParameter("command", "Command that shows the result.", required=False)),
    ),
    _define(
        "plan_mode_respond",
        "Answers the user while planning.",
        (
            _prose("response", "The answer."),
            ClientParameter(
                "needs_more_exploration", "Whether more must be read first.", required=False, kind=ValueKind.FLAG
            ),
            _OPTIONS,
        ),
    ),
    _define("act_mode_respond", "Tells the user something while working.", (_prose("response", "What to tell."),)),
    _define("new_task", "Starts a new task from a summary.", (_prose("context", "What it must know."),)),
    ClientTool("load_mcp_documentation", "Loads the documentation about MCP servers."),
    ClientTool("focus_chain", "Keeps the checklist.", (_PROGRESS,)),
    ClientTool(
        "generate_explanation",
        "Explains changes between two states.",
        (
            ClientParameter("title", "What it is about.", tolerance=Tolerance.PROSE),
            ClientParameter("from_ref", "The earlier state."),
            ClientParameter("to_ref", "The later state.", required=False),
        ),
    ),
    _define("use_skill", "Loads a skill.", (ClientParameter("skill_name", "Its name."),)),
    _define(
        "use_subagents",
        "Lets up to five others look at something.",
        tuple(_prose(f"prompt_{number}", "What to do.", required=number == 1) for number in range(1, 6)),
    ),
    ClientTool("condense", "Replaces the conversation by a summary.", (_prose("context", "The summary."),)),
    ClientTool("summarize_task", "Summarises the task.", (_prose("context", "The summary."),)),
    ClientTool(
        "report_bug",
        "Prepares a report of a fault.",
        (
            ClientParameter("title", "What it is about.", tolerance=Tolerance.PROSE),
            _prose("what_happened", "What happened."),
            _prose("steps_to_reproduce", "How to see it again."),
            _prose("api_request_output", "What the request gave."),
            _prose("additional_context", "What else there is to know."),
        ),
    ),
    ClientTool(
        "new_rule",
        "Writes a rule for later tasks.",
        (roo.PATH, replace(_CONTENT, may_be_empty=False)),
    ),
    _define("apply_patch", "Applies a patch.", (ClientParameter("input", "The patch.", kind=ValueKind.BLOCK),)),
)

_LAYOUTS = (
    replace(
        roo.LAYOUT,
        markers=("Tool use is formatted using XML-style tags. The tool name is enclosed",),
    ),
    PromptLayout(
        name="B",
        markers=("Exact XML tags for tool + params", "tool XML blocks"),
        section="## TOOLS",
        tool="**{name}**",
        description="\u2014",
        parameters="Params:",
        parameter="{name} (optional)",
        usage="*Example:*",
    ),
)
_KNOWN = {tool.name: tool for tool in _TOOLS}
_PARAMETERS = frozenset(one.name for tool in _TOOLS for one in tool.parameters) | {"absolutePath"}

CLIENTS = (
    XmlClient(
        name="cline-legacy",
        tools=_KNOWN,
        grammar=TagGrammar(tools=frozenset(_KNOWN), parameters=_PARAMETERS),
        parse=parse_cline,
        limits=ArgumentLimits(),
        aliases=roo.ALIASES,
        ignored_arguments=frozenset({"line_count"}),
        layouts=_LAYOUTS,
        reasoning_tags=frozenset({"thinking", "think"}),
    ),
)
