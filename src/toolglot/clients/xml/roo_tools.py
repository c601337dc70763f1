"""Tools that the versions of Roo and its fork Kilo have in common.

Parameters differ in un-escaping: file content and diffs are un-escaped unless the model id contains ``claude``, a
command always is, everything else is used unchanged.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.parsers import TagGrammar, parse_roo
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

_ENTITIES = (
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", '"'),
    ("&#39;", "'"),
    ("&apos;", "'"),
    ("&#91;", "["),
    ("&#93;", "]"),
    ("&lsqb;", "["),
    ("&rsqb;", "]"),
    ("&amp;", "&"),
)
UNESCAPE_ALWAYS = Unescaping(_ENTITIES)
UNESCAPE_UNLESS_CLAUDE = Unescaping(_ENTITIES, unless="claude")

LIMITS = ArgumentLimits(parameter=102_400, message=1_048_576, call=131_072)
ALIASES = {"ask_followup": "ask_followup_question"}
UNTRIMMED = frozenset({"content"})

LAYOUT = PromptLayout(
    name="A",
    markers=("The tool name itself becomes the XML tag name", "<actual_tool_name>"),
    section="# Tools",
    tool="## {name}",
    description="Description:",
    parameters="Parameters:",
    parameter="- {name}: ({need}) {description}",
    usage="Usage:",
)

PATH = ClientParameter(
    "path", "Path of the file, relative to the workspace.", aliases=("file", "file_path", "filename")
)
FOLDER = ClientParameter("path", "Path of the directory in the workspace.", aliases=("directory", "dir"), default=".")
OPTIONAL_PATH = replace(PATH, required=False)
START = ClientParameter("start_line", "First line, counted from 1.", required=False, kind=ValueKind.NUMBER)
END = ClientParameter("end_line", "Last line, included.", required=False, kind=ValueKind.NUMBER)
CONTENT = ClientParameter(
    "content",
    "The complete content of the file.",
    kind=ValueKind.BLOCK,
    tolerance=Tolerance.EXACT,
    unescaping=UNESCAPE_UNLESS_CLAUDE,
    rewrites=(ContentRewrite.FENCES, ContentRewrite.LINE_NUMBERS, ContentRewrite.BYTE_ORDER_MARK),
    aliases=("contents", "file_text"),
    may_be_empty=True,
)
INSERTED = ClientParameter(
    "content", "The text to insert.", kind=ValueKind.BLOCK, tolerance=Tolerance.EXACT, aliases=("text",)
)
LINE_COUNT = ClientParameter(
    "line_count", "The number of lines of the content.", kind=ValueKind.NUMBER, counts_lines_of="content"
)
DIFF = ClientParameter(
    "diff",
    "Blocks of text to search and to put in their place.",
    kind=ValueKind.BLOCK,
    unescaping=UNESCAPE_UNLESS_CLAUDE,
)
FILES = ClientParameter("args", "The files to read, each with a path.", kind=ValueKind.FILES, aliases=("files",))
SUGGESTIONS = ClientParameter(
    "follow_up",
    "Two to four answers to choose from, each with an optional mode.",
    kind=ValueKind.SUGGESTIONS,
    aliases=("suggestions", "options"),
    default="",
    may_be_empty=True,
    may_be_missing=True,
)
REGEX = ClientParameter(
    "regex", "Regular expression in the syntax of Rust.", tolerance=Tolerance.EXACT, aliases=("pattern",)
)
FILE_PATTERN = ClientParameter(
    "file_pattern", "Glob for the names of files.", required=False, tolerance=Tolerance.EXACT
)
RECURSIVE = ClientParameter(
    "recursive", "Whether to go into directories.", required=False, kind=ValueKind.FLAG, default="false"
)
QUESTION = ClientParameter("question", "What to ask the user.", tolerance=Tolerance.PROSE)
RESULT = ClientParameter("result", "The final answer to the user.", kind=ValueKind.BLOCK, tolerance=Tolerance.PROSE)
SERVER = ClientParameter("server_name", "Name of the MCP server.")
ARGUMENTS = ClientParameter(
    "arguments", "The arguments of the tool as a JSON object.", kind=ValueKind.JSON, default="{}", may_be_missing=True
)
URI = ClientParameter("uri", "Address of the resource.")
OLD_STRING = ClientParameter(
    "old_string", "The text to replace.", kind=ValueKind.BLOCK, tolerance=Tolerance.EXACT, may_be_empty=True
)
NEW_STRING = replace(OLD_STRING, name="new_string", description="The text to put in its place.")
FILE_PATH = replace(PATH, name="file_path", aliases=("path", "file"))

READ_FILE = ClientTool(
    "read_file",
    "Reads one or more files.",
    (FILES, OPTIONAL_PATH, START, END),
    one_of=("args", "path"),
)
WRITE_TO_FILE = ClientTool("write_to_file", "Writes a file, new or over the old one.", (PATH, CONTENT))
APPLY_DIFF = ClientTool(
    "apply_diff",
    "Changes parts of a file by search and replace blocks.",
    (PATH, DIFF, START),
    alternatives=(("args",),),
)
INSERT_CONTENT = ClientTool(
    "insert_content",
    "Inserts lines into a file without changing others.",
    (
        PATH,
        ClientParameter("line", "Line to insert before, counted from 1; 0 appends.", kind=ValueKind.NUMBER),
        INSERTED,
    ),
)
SEARCH_AND_REPLACE = ClientTool(
    "search_and_replace",
    "Replaces text or a regular expression in a file.",
    (
        PATH,
        ClientParameter("search", "What to search for.", tolerance=Tolerance.EXACT),
        ClientParameter("replace", "What to put in its place.", tolerance=Tolerance.EXACT, may_be_empty=True),
        START,
        END,
        ClientParameter(
            "use_regex", "Whether the search is a regular expression.", required=False, kind=ValueKind.FLAG
        ),
        ClientParameter("ignore_case", "Whether case is ignored.", required=False, kind=ValueKind.FLAG),
    ),
)
SEARCH_FILES = ClientTool(
    "search_files", "Searches files of a directory with a regular expression.", (FOLDER, REGEX, FILE_PATTERN)
)
LIST_FILES = ClientTool("list_files", "Lists files and directories.", (FOLDER, RECURSIVE))
LIST_DEFINITIONS = ClientTool(
    "list_code_definition_names",
    "Lists the names that are defined in a file, or in the files of a directory.",
    (replace(FOLDER, default=None, aliases=("file", "directory")),),
)
CODEBASE_SEARCH = ClientTool(
    "codebase_search",
    "Searches the code by meaning.",
    (ClientParameter("query", "What to search for."), replace(FOLDER, required=False, default=None)),
)
EXECUTE_COMMAND = ClientTool(
    "execute_command",
    "Runs a command in the user's shell.",
    (
        ClientParameter("command", "The command.", unescaping=UNESCAPE_ALWAYS, aliases=("cmd",)),
        ClientParameter("cwd", "Directory to run it in.", required=False),
    ),
)
BROWSER_ACTION = ClientTool(
    "browser_action",
    "Does one thing in a browser: launches, clicks, types, scrolls or closes it.",
    (
        ClientParameter("action", "What to do."),
        ClientParameter("url", "Address to open.", required=False),
        ClientParameter("coordinate", "Where, as x,y.", required=False),
        ClientParameter("size", "New size, as width,height.", required=False),
        ClientParameter("text", "Text to type.", required=False, tolerance=Tolerance.EXACT),
        OPTIONAL_PATH,
    ),
)
USE_MCP_TOOL = ClientTool(
    "use_mcp_tool",
    "Uses a tool of an MCP server.",
    (SERVER, ClientParameter("tool_name", "Name of the tool."), ARGUMENTS),
)
ACCESS_MCP_RESOURCE = ClientTool("access_mcp_resource", "Reads a resource of an MCP server.", (SERVER, URI))
ASK_FOLLOWUP_QUESTION = ClientTool(
    "ask_followup_question", "Asks the user a question, with answers to choose from.", (QUESTION, SUGGESTIONS)
)
ATTEMPT_COMPLETION = ClientTool(
    "attempt_completion",
    "Ends the task and tells its result.",
    (RESULT, ClientParameter("command", "Command that shows the result.", required=False)),
)
SWITCH_MODE = ClientTool(
    "switch_mode",
    "Switches to another mode.",
    (
        ClientParameter("mode_slug", "The mode to switch to."),
        ClientParameter("reason", "Why.", required=False, tolerance=Tolerance.PROSE),
    ),
)
TODOS = ClientParameter("todos", "The list, one line each: [ ], [x] or [-] and the task.", kind=ValueKind.BLOCK)
NEW_TASK = ClientTool(
    "new_task",
    "Starts a task of its own in a mode.",
    (
        ClientParameter("mode", "The mode to start in."),
        ClientParameter(
            "message",
            "What the task is.",
            kind=ValueKind.BLOCK,
            tolerance=Tolerance.PROSE,
            rewrites=(ContentRewrite.ESCAPED_MENTIONS,),
        ),
        replace(TODOS, required=False),
    ),
)
UPDATE_TODO_LIST = ClientTool("update_todo_list", "Replaces the list of things to do.", (TODOS,))
FETCH_INSTRUCTIONS = ClientTool(
    "fetch_instructions",
    "Fetches instructions for a task.",
    (ClientParameter("task", "create_mcp_server or create_mode."),),
)
RUN_SLASH_COMMAND = ClientTool(
    "run_slash_command",
    "Runs a slash command.",
    (ClientParameter("command", "Name of the command."), ClientParameter("args", "Its arguments.", required=False)),
)
GENERATE_IMAGE = ClientTool(
    "generate_image",
    "Makes an image, or changes one.",
    (
        ClientParameter("prompt", "What to show."),
        PATH,
        ClientParameter("image", "Path of the image to change.", required=False),
    ),
)

# not in prompts that teach XML, but known to the parsers of later versions
SEARCH_REPLACE = ClientTool("search_replace", "Replaces one piece of a file.", (FILE_PATH, OLD_STRING, NEW_STRING))
EDIT_FILE = ClientTool(
    "edit_file",
    "Replaces text in a file, once or several times.",
    (
        FILE_PATH,
        replace(OLD_STRING, may_be_missing=True),
        replace(NEW_STRING, may_be_missing=True),
        ClientParameter("expected_replacements", "How often it must be found.", required=False, kind=ValueKind.NUMBER),
    ),
)
APPLY_PATCH = ClientTool(
    "apply_patch",
    "Applies a patch.",
    (ClientParameter("patch", "The patch.", kind=ValueKind.BLOCK, tolerance=Tolerance.ENDS),),
)

COMMON = (
    EXECUTE_COMMAND,
    READ_FILE,
    APPLY_DIFF,
    SEARCH_FILES,
    LIST_FILES,
    BROWSER_ACTION,
    USE_MCP_TOOL,
    ACCESS_MCP_RESOURCE,
    ASK_FOLLOWUP_QUESTION,
    ATTEMPT_COMPLETION,
    SWITCH_MODE,
    NEW_TASK,
    FETCH_INSTRUCTIONS,
    CODEBASE_SEARCH,
    UPDATE_TODO_LIST,
    RUN_SLASH_COMMAND,
    GENERATE_IMAGE,
)

PARAMETERS = frozenset(
    {
        "command",
        "path",
        "content",
        "regex",
        "file_pattern",
        "recursive",
        "action",
        "url",
        "coordinate",
        "text",
        "server_name",
        "tool_name",
        "arguments",
        "uri",
        "question",
        "result",
        "diff",
        "mode_slug",
        "reason",
        "line",
        "mode",
        "message",
        "cwd",
        "follow_up",
        "task",
        "size",
        "args",
        "start_line",
        "end_line",
        "query",
        "todos",
        "prompt",
        "image",
    }
)
"""The parameter tags of every version."""


WRITE_WITH_LINE_COUNT = replace(WRITE_TO_FILE, parameters=(*WRITE_TO_FILE.parameters, LINE_COUNT))
"""With the number of lines, until 3.35.3."""
NATIVE_TAG = "search_and_replace"
"""A tool of 3.35 and later for native calls only. Its tag opens a call anywhere."""


def define_client(
    name: str, tools: tuple[ClientTool, ...], parameters: frozenset[str], tags: frozenset[str] = frozenset()
) -> XmlClient:
    """A version of Roo, or of a client with the same parser.

    Args:
        tools: tools besides the common ones.
        parameters: parameter tags besides the common ones.
        tags: further tags that open a call.
    """
    known = {tool.name: tool for tool in (*COMMON, *tools)}
    ignored = frozenset({"task_progress", "requires_approval"}) | ({"line_count"} - parameters)
    return XmlClient(
        name=name,
        tools=known,
        grammar=TagGrammar(
            tools=frozenset(known) | tags,
            parameters=PARAMETERS | parameters,
            untrimmed=UNTRIMMED,
            max_value_length=LIMITS.parameter,
        ),
        parse=parse_roo,
        limits=LIMITS,
        aliases=ALIASES,
        ignored_arguments=ignored,
        layouts=(LAYOUT,),
        leading_tags=frozenset({"think"}),
    )
