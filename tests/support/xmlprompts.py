"""System prompts in the layouts of XML clients, made from tables; the text is ours, only the layout is theirs.

``documented`` lists for each prompt the tools, their parameters, and which of those are required.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Flags = dict[str, bool]


@dataclass(frozen=True)
class Doc:
    """A tool in a prompt: bullets as (name, flag or "", text), and a sample. ``raw`` replaces all of it."""

    name: str
    tells: str
    bullets: Sequence[tuple[str, str, str]] = ()
    sample: Sequence[tuple[str, str]] = ()
    after: str = ""
    raw: str = ""
    truth: Mapping[str, bool] = field(default_factory=dict)

    @property
    def parameters(self) -> Flags:
        return dict(self.truth) or {name: flag == "required" for name, flag, _ in self.bullets}

    def write(self) -> str:
        if self.raw:
            return f"## {self.name}\n{self.raw}"
        bullets = [f"- {name}: {f'({flag}) ' if flag else ''}{text}" for name, flag, text in self.bullets]
        listed = "Parameters:\n" + "\n".join(bullets) if bullets else "Parameters: None"
        sample = "\n".join(f"<{key}>{value}</{key}>" for key, value in self.sample)
        usage = f"Usage:\n<{self.name}>\n{sample}\n</{self.name}>" if self.sample else ""
        return "\n".join(filter(None, (f"## {self.name}", f"Description: {self.tells}", listed, usage, self.after)))


R, OPT = "required", "optional"
CWD = "relative to the workspace directory /home/dev/shop"

ROO = (
    Doc(
        "read_file",
        "",
        raw=f"""Description: Reads one or several files and shows them with numbered lines.

**IMPORTANT: At most 5 files can be read in one request.**

Parameters:
- args: Holds one or more file elements, each of which holds:
  - path: (required) Path of the file ({CWD})
  - line_range: (optional) One or more ranges in the form "start-end"

Usage:
<read_file>
<args>
  <file>
    <path>path/to/file</path>
    <line_range>start-end</line_range>
  </file>
</args>
</read_file>

Examples:

1. One file:
<read_file>
<args>
  <file>
    <path>src/shop.py</path>
  </file>
</args>
</read_file>

IMPORTANT: Read all related files together.""",
        truth={"args": True},
    ),
    Doc(
        "fetch_instructions",
        "Fetches the instructions for a task.",
        [("task", R, "The task.  It is one of these:\n  create_mcp_server\n  create_mode")],
        [("task", "create_mcp_server")],
    ),
    Doc(
        "search_files",
        "Searches files of a directory with an expression.",
        [
            ("path", R, f"The directory ({CWD})."),
            ("regex", R, "The expression, in the syntax of Rust."),
            ("file_pattern", OPT, "Only files of this pattern (e.g., '*.ts')."),
        ],
        [
            ("path", "Directory path here"),
            ("regex", "Your pattern here"),
            ("file_pattern", "file pattern here (optional)"),
        ],
        after="Example: All .ts files in the current directory\n<search_files>\n<path>.</path>\n<regex>.*</regex>\n"
        "<file_pattern>*.ts</file_pattern>\n</search_files>",
    ),
    Doc(
        "list_files",
        "Lists a directory. Do not use it to check that a file was written.",
        [("path", R, f"The directory ({CWD})"), ("recursive", OPT, "Use true to go down, false or nothing otherwise.")],
        [("path", "Directory path here"), ("recursive", "true or false (optional)")],
    ),
    Doc(
        "apply_diff",
        "",
        raw=f"""Description: Changes parts of a file by exact search and replacement.

Parameters:
- path: (required) The file to change ({CWD})
- diff: (required) The block that is described below.

Diff format:
```
<<<<<<< SEARCH
:start_line: (required) The line where the block begins.
-------
[what to find]
=======
[what to put there]
>>>>>>> REPLACE

```

## Not a tool

Example:

Original file:
```
# A heading in a file
1 | def total(items):
2 |     return 0
```

Usage:
<apply_diff>
<path>File path here</path>
<diff>
Your block here
</diff>
</apply_diff>""",
        truth={"path": True, "diff": True},
    ),
    Doc(
        "write_to_file",
        "Writes a whole file.",
        [
            ("path", R, f"The file ({CWD})"),
            ("content", R, "All of its content. Do NOT put line numbers into it."),
            ("line_count", R, "How many lines it has, counted from the content."),
        ],
        [("path", "File path here"), ("content", "\nYour content\n"), ("line_count", "total number of lines")],
    ),
    Doc(
        "insert_content",
        "",
        raw="""Description: Adds lines to a file without changing others.

Parameters:
- path: (required) The file
- line: (required) The line in front of which to insert (0 appends)
- content: (required) The lines

Example for the first line:
<insert_content>
<path>src/utils.ts</path>
<line>1</line>
<content>
import { parse } from 'path';
</content>
</insert_content>
""",
        truth={"path": True, "line": True, "content": True},
    ),
    Doc(
        "search_and_replace",
        "",
        raw="""Description: Finds and replaces text in a file.

Required Parameters:
- path: The file
- search: What to find
- replace: What to put there

Optional Parameters:
- start_line: First line (1-based)
- end_line: Last line (1-based)
- use_regex: Set to "true" for an expression
- ignore_case: Set to "true" to ignore case

Notes:
- With use_regex the search is an expression

Examples:

1. Plain:
<search_and_replace>
<path>example.ts</path>
<search>old</search>
<replace>new</replace>
</search_and_replace>""",
        truth={"path": True, "search": True, "replace": True}
        | dict.fromkeys(("start_line", "end_line", "use_regex", "ignore_case"), False),
    ),
    Doc(
        "execute_command",
        "Runs a command on the system.",
        [("command", R, "The command."), ("cwd", OPT, "Where to run it (default: /home/dev/shop)")],
        [("command", "Your command here"), ("cwd", "Working directory path (optional)")],
    ),
    Doc(
        "browser_action",
        "Works a browser.",
        [
            (
                "action",
                R,
                "What to do. There are:\n    * launch: Open it.\n        - This must be the first action.\n"
                "        - Use it with the `url` parameter.\n    * click: Click.\n"
                "        - Example: <coordinate>450,300</coordinate>",
            ),
            ("url", OPT, "The address for launch.\n    * Example: <url>https://example.com</url>"),
            ("coordinate", OPT, "Where to click."),
            ("size", OPT, "Width and height for resize."),
            ("text", OPT, "What to type."),
        ],
        [("action", "Action to perform"), ("url", "URL to launch the browser at (optional)")],
    ),
    Doc(
        "use_mcp_tool",
        "Uses a tool of a connected MCP server.",
        [("server_name", R, "The server"), ("tool_name", R, "The tool"), ("arguments", R, "Its input, a JSON object")],
        [("server_name", "server"), ("tool_name", "tool"), ("arguments", '\n{\n  "param1": "value1"\n}\n')],
    ),
    Doc(
        "ask_followup_question",
        "Asks the user.",
        [
            ("question", R, "The question."),
            (
                "follow_up",
                R,
                "2-4 answers, each in its own <suggest> tag:\n    1. Complete answers\n    2. No placeholders",
            ),
        ],
        [
            ("question", "Your question"),
            ("follow_up", '\n<suggest>First</suggest>\n<suggest mode="code">Second</suggest>\n'),
        ],
    ),
    Doc(
        "attempt_completion",
        "Shows the result.\nIMPORTANT NOTE: not before the last use of a tool has succeeded.",
        [("result", R, "What was done.")],
        [("result", "\nYour result\n")],
    ),
    Doc(
        "switch_mode",
        "Asks for another mode.",
        [("mode_slug", R, "The mode"), ("reason", OPT, "Why")],
        [("mode_slug", "Mode slug here"), ("reason", "Reason here")],
    ),
    Doc(
        "new_task",
        "Begins a task.",
        [("mode", R, "The mode"), ("message", R, "The first message")],
        [("mode", "your-mode-slug"), ("message", "Your initial instructions here")],
    ),
    Doc(
        "update_todo_list",
        "",
        raw="""
**Description:**
Replaces the whole list of things to do.

**Checklist Format:**
- Use a single level of list
- Status: [ ], [x], [-]

**Usage Example:**
<update_todo_list>
<todos>
[x] Look at the requirements
[-] Write code
[ ] Write tests
</todos>
</update_todo_list>

**When to Use:**
- The task has several steps.""",
        truth={"todos": True},
    ),
)

CUSTOM = (
    "## deploy_shop\nDescription: Puts the shop online.\nParameters:\n- stage: (required) The stage (type: string)\n"
    "- force: (optional) Without questions (type: boolean)\n- retries: (optional) How often (type: number)"
)
CUSTOM_TRUTH = {"deploy_shop": {"stage": True, "force": False, "retries": False}}

KILO_EDIT = Doc(
    "edit_file",
    "",
    raw="""Description: Edits a file by a sketch of the change.

Parameters:
1. **target_file** (string): The file to change
2. **instructions** (string): One sentence about the change
3. **code_edit** (string): The changed lines, with // ... where nothing changes
""",
    truth={"target_file": True, "instructions": True, "code_edit": True},
)

_PROGRESS = ("task_progress", OPT, "A checklist of what is done and what is not, after this use of the tool.")

CLINE = (
    Doc(
        "execute_command",
        "Runs a command.",
        [
            ("command", R, "The command."),
            ("requires_approval", R, "Whether it is dangerous."),
            ("timeout", OPT, "Seconds."),
        ],
        [("command", "Your command here"), ("requires_approval", "true or false"), ("timeout", "30")],
    ),
    Doc(
        "read_file",
        "Reads a file.",
        [
            ("path", R, f"The file ({CWD})"),
            ("start_line", OPT, "The first line."),
            ("end_line", OPT, "The last."),
            _PROGRESS,
        ],
        [("path", "File path here"), ("start_line", "1"), ("task_progress", "Checklist here (optional)")],
    ),
    Doc(
        "write_to_file",
        "Writes a file.",
        [("path", R, "The file"), ("content", R, "All of it."), _PROGRESS],
        [
            ("path", "File path here"),
            ("content", "Your file content here"),
            ("task_progress", "Checklist here (optional)"),
        ],
    ),
    Doc(
        "replace_in_file",
        "Changes parts of a file.",
        [
            ("path", R, "The file"),
            (
                "diff",
                R,
                "Blocks of this form:\n  ```\n  ------- SEARCH\n  [what to find]\n  =======\n  [what to put]\n"
                "  +++++++ REPLACE\n  ```\n  Rules:\n  1. Match exactly:\n     * whitespace too\n  2. Keep blocks short:\n"
                "     * a few lines",
            ),
            _PROGRESS,
        ],
        [("path", "File path here"), ("diff", "Search and replace blocks here")],
    ),
    Doc(
        "search_files",
        "Searches files.",
        [
            ("path", R, "The directory"),
            ("regex", R, "The expression."),
            ("file_pattern", OPT, "Which files."),
            _PROGRESS,
        ],
        [("path", "Directory path here"), ("regex", "Your regex pattern here")],
    ),
    Doc(
        "list_files",
        "Lists a directory.",
        [("path", R, "The directory"), ("recursive", OPT, "Whether to go down."), _PROGRESS],
        [("path", "Directory path here"), ("recursive", "true or false (optional)")],
    ),
    Doc(
        "use_mcp_tool",
        "Uses a tool of a server.",
        [("server_name", R, "The server"), ("tool_name", R, "The tool"), ("arguments", R, "A JSON object"), _PROGRESS],
        [
            ("server_name", "server name here"),
            ("tool_name", "tool name here"),
            ("arguments", '\n{\n  "param1": "value1"\n}\n'),
        ],
    ),
    Doc(
        "ask_followup_question",
        "Asks the user.",
        [("question", R, "The question."), ("options", OPT, "An array of 2-5 answers."), _PROGRESS],
        [("question", "Your question here"), ("options", '["Option 1", "Option 2"]')],
    ),
    Doc(
        "attempt_completion",
        "Shows the result.",
        [("result", R, "What was done."), ("command", OPT, "A command that shows it."), _PROGRESS],
        [("result", "Your final result description here"), ("command", "Your command here (optional)")],
    ),
    Doc(
        "new_task",
        "Begins a task.",
        [("Context", R, "What to begin with:\n  1. Current Work: what was done\n  2. Pending Tasks: what was not")],
        [("context", "context to preload new task with")],
        truth={"context": True},
    ),
    Doc(
        "plan_mode_respond",
        "Answers while planning. Do not put text directly within <plan_mode_respond> tags.",
        [
            ("response", R, "The answer, not within <plan_mode_respond> tags alone."),
            ("needs_more_exploration", OPT, "Set to true if so."),
        ],
        [("response", "Your response here"), ("needs_more_exploration", "true, if in <response> you need more files")],
    ),
    Doc("load_mcp_documentation", "Shows how to write a server."),
)

COMPACT = """**execute_command** — Run a command in /home/dev/shop.
Params: command, requires_approval.
Key: No output means success.
*Example:*
<execute_command>
<command>npm run build</command>
<requires_approval>false</requires_approval>
</execute_command>

**read_file** — Read a file. Param: path.
*Example:* <read_file><path>src/App.tsx</path></read_file>

**write_to_file** — Write a file. Params: path, content (complete).

**replace_in_file** — Change parts. Params: path, diff.
*Example:*
<replace_in_file>
<path>src/index.ts</path>
<diff>
------- SEARCH
console.log('Hi');
=======
console.log('Hello');
+++++++ REPLACE
</diff>
</replace_in_file>

**search_files** — Search. Params: path, regex, file_pattern (optional).

**list_files** – List a directory. Params: path, recursive (optional).
Key: Not for checks.

**ask_followup_question** — Ask. Params: question, options (2–5).
Key: Never offer to change modes.

**attempt_completion** — The result. Params: result, command (optional demo).
**Gate:** Ask yourself whether all earlier uses succeeded.

**new_task** — Begin a task. Param: context (Work; Concepts; Files; Pending).

**use_subagents** — Ask helpers.
Params: prompt_1 (required), prompt_2, prompt_3, prompt_4, prompt_5 (all optional).
"""
COMPACT_TRUTH: dict[str, Flags] = {
    "execute_command": {"command": True, "requires_approval": True},
    "read_file": {"path": True},
    "write_to_file": {"path": True, "content": True},
    "replace_in_file": {"path": True, "diff": True},
    "search_files": {"path": True, "regex": True, "file_pattern": False},
    "list_files": {"path": True, "recursive": False},
    "ask_followup_question": {"question": True, "options": False},
    "attempt_completion": {"result": True, "command": False},
    "new_task": {"context": True},
    "use_subagents": {"prompt_1": True} | {f"prompt_{number}": False for number in range(2, 6)},
}

SERVERS: Mapping[str, Sequence[tuple[str, str, Mapping[str, Any]]]] = {
    "weather": [
        (
            "get_forecast",
            "The weather of the next days: sun, rain.",
            {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        ),
        ("list_alerts", "Warnings.\n    - of all kinds", {"type": "object", "properties": {}}),
    ],
    "github.com/example/issues": [
        ("create_issue", "A new issue.", {"type": "object", "properties": {"title": {"type": "string"}}})
    ],
}

CUSTOM_RULES = "The config is in XML format. Use <read_file> wisely."
"""The user's own instructions, which stay unchanged."""
_FILLER = (
    "Take the smallest step that helps.",
    "Look at the project before you change it, and keep its style.",
    "A path never leaves the workspace; a command that must run elsewhere changes the directory itself.",
    "Say what was done and not what might be done next.",
    "Wait for the result of each use of a tool before the next one.",
)


def _fill(size: int) -> str:
    lines = [f"- {_FILLER[number % len(_FILLER)]} ({number})" for number in range(max(size, 0) // 50)]
    text = "\n".join(lines)
    return text[: max(size, 0)].rsplit("\n", 1)[0]


def write_servers(servers: Mapping[str, Sequence[tuple[str, str, Mapping[str, Any]]]] = SERVERS) -> str:
    written = ["# Connected MCP Servers\n\nWhen a server is connected, its tools are used via `use_mcp_tool`.\n"]
    for server, tools in servers.items():
        listed = []
        for name, tells, schema in tools:
            shown = "\n".join("    " + line for line in json.dumps(schema, indent=2).split("\n"))
            listed.append(f"- {name}: {tells}\n    Input Schema:\n{shown}")
        written.append(
            f"## {server} (`node server.js`)\n\n### Available Tools\n"
            + "\n\n".join(listed)
            + "\n\n### Direct Resources\n- shop://stock (stock): What is there\n"
        )
    return "\n".join(written)


def _grow(parts: Sequence[str], size: int) -> str:
    """The parts with ``{filler}`` filled so that all of it has about the size."""
    text = "".join(parts)
    return text.replace("{filler}", _fill(size - len(text)))


def write_roo(
    tools: Iterable[Doc] = ROO,
    size: int = 38_000,
    role: str = "You are Roo, an engineer.",
    custom: str = "",
    servers: bool = True,
) -> str:
    """A prompt as Roo and Kilo write them."""
    return _grow(
        [
            f"{role}\n\n====\n\nMARKDOWN RULES\n\nAll names of files are links.\n\n====\n\nTOOL USE\n\nYou have tools that run when the "
            "user agrees. You must use exactly one tool per message, and every assistant message must include a tool call.\n\n"
            "# Tool Use Formatting\n\nTool uses are formatted using XML-style tags. The tool name itself becomes the XML tag name. "
            "So:\n\n<actual_tool_name>\n<parameter1_name>value1</parameter1_name>\n...\n</actual_tool_name>\n\n"
            "Always use the actual tool name as the XML tag name.\n\n# Tools\n\n",
            "\n\n".join(tool.write() for tool in tools),
            f"\n\n# Custom Tools\n\nThese are the project's own.\n\n{custom}" if custom else "",
            "\n\n# Tool Use Guidelines\n\n1. Think first.\n2. Choose a tool.\n3. Formulate your tool use using the XML format "
            "specified for each tool.\n4. Wait. Always use the XML form. Then go on.\n\n",
            f"====\n\nMCP SERVERS\n\nServers add tools.\n\n{write_servers()}\n" if servers else "",
            "====\n\nCAPABILITIES\n\n- You can do much.\n\n====\n\nRULES\n\n- Never ask twice.\n{filler}\n\n====\n\nSYSTEM INFORMATION\n\n"
            "Operating System: Linux\nCurrent Workspace Directory: /home/dev/shop\n\n====\n\nOBJECTIVE\n\nYou work step by step.\n\n\n"
            f"====\n\nUSER'S CUSTOM INSTRUCTIONS\n\n{CUSTOM_RULES}\n",
        ],
        size,
    )


def write_cline(tools: Iterable[Doc] = CLINE, size: int = 58_000, servers: bool = True) -> str:
    """A prompt as Cline writes them for most models."""
    return _grow(
        [
            "You are Cline, an engineer.\n\nTOOL USE\n\nYou have tools. You can use one tool per message.\n\n# Tool Use Formatting\n\n"
            "Tool use is formatted using XML-style tags. The tool name is enclosed in opening and closing tags. So:\n\n<tool_name>\n"
            "<parameter1_name>value1</parameter1_name>\n...\n</tool_name>\n\n# Tools\n\n",
            "\n\n".join(tool.write() for tool in tools),
            "\n\n# Tool Use Examples\n\n## Example 1: A command\n\n<execute_command>\n<command>npm run dev</command>\n"
            "<requires_approval>false</requires_approval>\n</execute_command>\n\n## Example 2: A file\n\n<write_to_file>\n"
            "<path>README.md</path>\n<content>\n# A heading in a sample\n</content>\n</write_to_file>\n\n"
            "# Tool Use Guidelines\n\n1. In <thinking> tags, think.\n2. Formulate your tool use using the XML format specified for "
            "each tool.\n3. Wait.\n\n====\n\nUPDATING TASK PROGRESS\n\nExample:\n<execute_command>\n<command>npm install</command>\n"
            "<requires_approval>false</requires_approval>\n<task_progress>\n- [x] Begin\n</task_progress>\n</execute_command>\n\n",
            f"====\n\nMCP SERVERS\n\nServers add tools.\n\n{write_servers()}\n" if servers else "",
            "====\n\nEDITING FILES\n\n# write_to_file\n\n## Purpose\n\n- New files.\n\n====\n\nRULES\n\n- Never ask twice.\n"
            "- Keep markers as they are. Malformed XML will break it.\n{filler}\n\n====\n\nSYSTEM INFORMATION\n\nOperating System: Linux\n"
            f"\n====\n\nOBJECTIVE\n\nYou work step by step.\n\n====\n\nUSER'S CUSTOM INSTRUCTIONS\n\n{CUSTOM_RULES}\n",
        ],
        size,
    )


def write_compact(size: int = 6_000) -> str:
    """A prompt as Cline writes them for small models."""
    return _grow(
        [
            "You are Cline, an engineer.\n\n## GLOBAL RULES\n- One tool per message; wait for the result.\n- Exact XML tags for tool + params.\n"
            "- If anything is unclear, use <ask_followup_question>.\n\n## TOOLS\n\n",
            COMPACT,
            "\n## MODES\nPLAN and ACT.\n\n## RULES\n{filler}\n\n## SYSTEM INFORMATION\n\nOperating System: Linux\n",
        ],
        size,
    )


def documented(tools: Iterable[Doc]) -> dict[str, Flags]:
    return {tool.name: tool.parameters for tool in tools}
