"""The forms in which the prompts of XML clients document their tools, with invented values.

Each row is the text of a call, and what the client's tool must be given by it. ``ROO`` is for all versions of Roo and
for Kilo, as far as they have the tool; ``KILO`` and ``CLINE`` for those.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from toolglot.clients.xml.client import XmlClient


class Form(NamedTuple):
    """One documented form of a call."""

    text: str
    given: dict[str, Any]

    @property
    def tool(self) -> str:
        return self.text[1 : self.text.index(">")]


def element(tool: str, inside: str) -> str:
    return f"<{tool}>\n{inside}\n</{tool}>"


DIFF = "<<<<<<< SEARCH\n:start_line:3\n-------\nif (a < b) {\n=======\nif (a <= b) {\n>>>>>>> REPLACE"
TWO_BLOCKS = f"{DIFF}\n\n{DIFF.replace(':3', ':30')}"
CLINE_DIFF = "------- SEARCH\nif (a < b) {\n=======\nif (a <= b) {\n+++++++ REPLACE"
TODOS = "[x] Look at the cart\n[-] Write a test\n[ ] Fix it"
PROGRESS = "- [x] Look at the cart\n- [ ] Fix it"
CODE = "export function total(a: number[]): number {\n  return a.length < 1 ? 0 : a[0] && 1\n}\n"
PATCH = "*** Begin Patch\n*** Update File: src/cart.ts\n@@\n-a < b\n+a <= b\n*** End Patch"
WRITTEN = f"<path>src/cart.ts</path>\n<content>\n{CODE}\n</content>"


def list_files(*files: tuple[str, ...]) -> str:
    """The element of files to read: each a path and its ranges."""
    lines = []
    for path, *ranges in files:
        lines += ["  <file>", f"    <path>{path}</path>"]
        lines += [f"    <line_range>{one}</line_range>" for one in ranges] + ["  </file>"]
    return "\n".join(["<args>", *lines, "</args>"])


def files(*given: tuple[str, ...]) -> dict[str, Any]:
    read = [{"path": path, "line_range": ranges} if ranges else {"path": path} for path, *ranges in given]
    return {"args": {"file": read}}


READS = (
    (("src/cart.ts",),),
    (("src/cart.ts", "1-40"),),
    (("src/cart.ts", "1-40", "90-120"),),
    (("src/cart.ts",), ("src/shop.ts",)),
    (("src/cart.ts", "1-40", "90-120"), ("src/shop.ts", "7-9"), ("README.md",)),
    (("a.ts",), ("b.ts",), ("c.ts",), ("d.ts",), ("e.ts",)),
)
ROO = (
    *(Form(element("read_file", list_files(*read)), files(*read)) for read in READS),
    Form(element("read_file", "<path>src/cart.ts</path>"), {"path": "src/cart.ts"}),
    Form(
        element("read_file", "<path>a.log</path>\n<start_line>5</start_line>\n<end_line>9</end_line>"),
        {"path": "a.log", "start_line": 5, "end_line": 9},
    ),
    Form(element("write_to_file", WRITTEN), {"path": "src/cart.ts", "content": CODE}),
    Form(
        element("write_to_file", f"{WRITTEN}\n<line_count>3</line_count>"),
        {"path": "src/cart.ts", "content": CODE, "line_count": 3},
    ),
    Form(
        element("write_to_file", "<path>empty.txt</path>\n<content>\n</content>"), {"path": "empty.txt", "content": ""}
    ),
    *(
        Form(
            element("apply_diff", f"<path>src/cart.ts</path>\n<diff>\n{diff}\n</diff>"),
            {"path": "src/cart.ts", "diff": diff},
        )
        for diff in (DIFF, TWO_BLOCKS)
    ),
    Form(
        element(
            "apply_diff",
            "<args>\n<file>\n  <path>src/a.ts</path>\n  <diff>\n    <content><![CDATA[\nold\n]]></content>\n"
            "    <start_line>1</start_line>\n  </diff>\n</file>\n<file>\n  <path>src/b.ts</path>\n  <diff>\n"
            "    <content>\nx\n</content>\n  </diff>\n</file>\n</args>",
        ),
        {},
    ),
    *(
        Form(
            element(
                "insert_content",
                f"<path>src/a.ts</path>\n<line>{line}</line>\n<content>\nimport a from 'a'\n</content>",
            ),
            {"path": "src/a.ts", "line": line, "content": "import a from 'a'"},
        )
        for line in (0, 12)
    ),
    Form(
        element("search_and_replace", "<path>a.ts</path>\n<search>old < 1</search>\n<replace>new</replace>"),
        {"path": "a.ts", "search": "old < 1", "replace": "new"},
    ),
    Form(
        element(
            "search_and_replace",
            "<path>a.ts</path>\n<search>old\\w+</search>\n<replace>new$&</replace>\n<start_line>1</start_line>\n"
            "<end_line>9</end_line>\n<use_regex>true</use_regex>\n<ignore_case>true</ignore_case>",
        ),
        {
            "path": "a.ts",
            "search": "old\\w+",
            "replace": "new$&",
            "start_line": 1,
            "end_line": 9,
            "use_regex": True,
            "ignore_case": True,
        },
    ),
    Form(
        element("search_files", "<path>src</path>\n<regex>Map<\\w+></regex>\n<file_pattern>*.ts</file_pattern>"),
        {"path": "src", "regex": "Map<\\w+>", "file_pattern": "*.ts"},
    ),
    Form(element("search_files", "<path>.</path>\n<regex>TODO</regex>"), {"path": ".", "regex": "TODO"}),
    Form(element("list_files", "<path>.</path>\n<recursive>true</recursive>"), {"path": ".", "recursive": True}),
    Form(element("list_files", "<path>.</path>\n<recursive>false</recursive>"), {"path": ".", "recursive": False}),
    Form(element("list_files", "<path>src</path>"), {"path": "src"}),
    Form(element("list_code_definition_names", "<path>src</path>"), {"path": "src"}),
    Form(
        element("codebase_search", "<query>How is a cart paid?</query>\n<path>src</path>"),
        {"query": "How is a cart paid?", "path": "src"},
    ),
    Form(element("codebase_search", "<query>payment</query>"), {"query": "payment"}),
    Form(element("execute_command", "<command>npm test</command>"), {"command": "npm test"}),
    Form(
        element("execute_command", "<command>sort < in.txt | uniq > out.txt && echo 1</command>\n<cwd>/srv/shop</cwd>"),
        {"command": "sort < in.txt | uniq > out.txt && echo 1", "cwd": "/srv/shop"},
    ),
    *(
        Form(
            element("browser_action", "\n".join(f"<{key}>{value}</{key}>" for key, value in given.items())),
            given,
        )
        for given in (
            {"action": "launch", "url": "http://localhost:3000"},
            {"action": "click", "coordinate": "450,300"},
            {"action": "hover", "coordinate": "450,300@1024x768"},
            {"action": "type", "text": "Hello, a < b"},
            {"action": "press", "text": "Enter"},
            {"action": "resize", "size": "1280,720"},
            {"action": "screenshot", "path": "shots/one.png"},
            {"action": "scroll_down"},
            {"action": "close"},
        )
    ),
    Form(
        element(
            "use_mcp_tool",
            '<server_name>weather</server_name>\n<tool_name>forecast</tool_name>\n<arguments>\n{\n  "city": "Bern",\n'
            '  "days": 5, "q": "a < b"\n}\n</arguments>',
        ),
        {"server_name": "weather", "tool_name": "forecast", "arguments": {"city": "Bern", "days": 5, "q": "a < b"}},
    ),
    Form(
        element("use_mcp_tool", "<server_name>weather</server_name>\n<tool_name>now</tool_name>"),
        {"server_name": "weather", "tool_name": "now"},
    ),
    Form(
        element("access_mcp_resource", "<server_name>weather</server_name>\n<uri>weather://bern/now?a=1&b=2</uri>"),
        {"server_name": "weather", "uri": "weather://bern/now?a=1&b=2"},
    ),
    Form(
        element(
            "ask_followup_question",
            "<question>Which file holds the prices?</question>\n<follow_up>\n<suggest>src/prices.json</suggest>\n"
            "<suggest>config/prices.json</suggest>\n</follow_up>",
        ),
        {
            "question": "Which file holds the prices?",
            "follow_up": [{"text": "src/prices.json"}, {"text": "config/prices.json"}],
        },
    ),
    Form(
        element(
            "ask_followup_question",
            '<question>How to go on?</question>\n<follow_up>\n<suggest mode="code">Write it & test</suggest>\n'
            '<suggest>Stop</suggest>\n<suggest mode="architect">Plan <b>first</b></suggest>\n</follow_up>',
        ),
        {
            "question": "How to go on?",
            "follow_up": [
                {"text": "Write it & test", "mode": "code"},
                {"text": "Stop"},
                {"text": "Plan <b>first</b>", "mode": "architect"},
            ],
        },
    ),
    Form(element("ask_followup_question", "<question>Which?</question>"), {"question": "Which?"}),
    Form(
        element("attempt_completion", "<result>\nThe total is < 10 now; `a && b` holds.\n</result>"),
        {"result": "The total is < 10 now; `a && b` holds."},
    ),
    Form(
        element("attempt_completion", "<result>\nDone.\n</result>\n<command>open index.html</command>"),
        {"result": "Done.", "command": "open index.html"},
    ),
    Form(
        element("switch_mode", "<mode_slug>code</mode_slug>\n<reason>There is code to write</reason>"),
        {"mode_slug": "code", "reason": "There is code to write"},
    ),
    Form(element("switch_mode", "<mode_slug>ask</mode_slug>"), {"mode_slug": "ask"}),
    Form(
        element("new_task", "<mode>code</mode>\n<message>Fix the total.</message>"),
        {"mode": "code", "message": "Fix the total."},
    ),
    Form(
        element("new_task", f"<mode>code</mode>\n<message>Fix it</message>\n<todos>\n{TODOS}\n</todos>"),
        {"mode": "code", "message": "Fix it", "todos": TODOS},
    ),
    Form(element("update_todo_list", f"<todos>\n{TODOS}\n</todos>"), {"todos": TODOS}),
    Form(element("fetch_instructions", "<task>create_mode</task>"), {"task": "create_mode"}),
    Form(
        element("run_slash_command", "<command>review</command>\n<args>only src < 3</args>"),
        {"command": "review", "args": "only src < 3"},
    ),
    Form(element("run_slash_command", "<command>init</command>"), {"command": "init"}),
    Form(
        element("generate_image", "<prompt>A red cart</prompt>\n<path>img/cart.png</path>\n<image>img/old.png</image>"),
        {"prompt": "A red cart", "path": "img/cart.png", "image": "img/old.png"},
    ),
    Form(
        element("generate_image", "<prompt>A red cart</prompt>\n<path>img/cart.png</path>"),
        {"prompt": "A red cart", "path": "img/cart.png"},
    ),
    Form(element("apply_patch", f"<patch>\n{PATCH}\n</patch>"), {"patch": PATCH}),
)
KILO = (
    Form(
        element(
            "edit_file",
            "<target_file>src/cart.ts</target_file>\n<instructions>I compare with <=</instructions>\n<code_edit>\n"
            "// ... existing code ...\nif (a <= b) {\n// ... existing code ...\n</code_edit>",
        ),
        {
            "target_file": "src/cart.ts",
            "instructions": "I compare with <=",
            "code_edit": "// ... existing code ...\nif (a <= b) {\n// ... existing code ...",
        },
    ),
    Form(element("delete_file", "<path>old/cart.ts</path>"), {"path": "old/cart.ts"}),
    Form(
        element("new_rule", "<path>.kilocode/rules/tests.md</path>\n<content>\n# Tests\n- a < b\n</content>"),
        {"path": ".kilocode/rules/tests.md", "content": "# Tests\n- a < b"},
    ),
    Form(
        element("report_bug", "<title>Cart fails</title>\n<description>It says a < b.</description>"),
        {"title": "Cart fails", "description": "It says a < b."},
    ),
    Form(element("condense", "<message>\n1. The cart\n2. a < b\n</message>"), {"message": "1. The cart\n2. a < b"}),
)


def with_progress(text: str) -> str:
    """The same call with the checklist that Cline documents for most tools."""
    at = text.rindex("</")
    return f"{text[:at]}<task_progress>\n{PROGRESS}\n</task_progress>\n{text[at:]}"


_CLINE = (
    Form(
        element("execute_command", "<command>npm test</command>\n<requires_approval>false</requires_approval>"),
        {"command": "npm test", "requires_approval": False},
    ),
    Form(
        element(
            "execute_command",
            "<command>sort < a > b</command>\n<requires_approval>true</requires_approval>\n<timeout>30</timeout>",
        ),
        {"command": "sort < a > b", "requires_approval": True, "timeout": 30},
    ),
    Form(element("read_file", "<path>src/cart.ts</path>"), {"path": "src/cart.ts"}),
    Form(
        element("read_file", "<path>a.log</path>\n<start_line>5</start_line>\n<end_line>9</end_line>"),
        {"path": "a.log", "start_line": 5, "end_line": 9},
    ),
    Form(element("write_to_file", WRITTEN), {"path": "src/cart.ts", "content": CODE.strip()}),
    Form(
        element("write_to_file", WRITTEN.replace("path>", "absolutePath>")),
        {"absolutePath": "src/cart.ts", "content": CODE.strip()},
    ),
    Form(
        element("replace_in_file", f"<path>src/cart.ts</path>\n<diff>\n{CLINE_DIFF}\n</diff>"),
        {"path": "src/cart.ts", "diff": CLINE_DIFF},
    ),
    Form(
        element("search_files", "<path>src</path>\n<regex>Map<\\w+></regex>\n<file_pattern>*.ts</file_pattern>"),
        {"path": "src", "regex": "Map<\\w+>", "file_pattern": "*.ts"},
    ),
    Form(element("list_files", "<path>.</path>\n<recursive>true</recursive>"), {"path": ".", "recursive": True}),
    Form(element("list_code_definition_names", "<path>src</path>"), {"path": "src"}),
    *(
        Form(
            element("browser_action", "\n".join(f"<{key}>{value}</{key}>" for key, value in given.items())),
            given,
        )
        for given in (
            {"action": "launch", "url": "http://localhost:3000"},
            {"action": "click", "coordinate": "450,300"},
            {"action": "type", "text": "a < b"},
            {"action": "close"},
        )
    ),
    Form(
        element("web_fetch", "<url>https://example.com/a?b=1&c=2</url>\n<prompt>Is a < b?</prompt>"),
        {"url": "https://example.com/a?b=1&c=2", "prompt": "Is a < b?"},
    ),
    Form(
        element(
            "web_search",
            '<query>cart a < b</query>\n<allowed_domains>["example.com", "example.org"]</allowed_domains>',
        ),
        {"query": "cart a < b", "allowed_domains": ["example.com", "example.org"]},
    ),
    Form(
        element("web_search", '<query>cart</query>\n<blocked_domains>["example.com"]</blocked_domains>'),
        {"query": "cart", "blocked_domains": ["example.com"]},
    ),
    Form(
        element(
            "use_mcp_tool",
            '<server_name>weather</server_name>\n<tool_name>now</tool_name>\n<arguments>\n{"city": "a < b"}\n</arguments>',
        ),
        {"server_name": "weather", "tool_name": "now", "arguments": {"city": "a < b"}},
    ),
    Form(
        element("access_mcp_resource", "<server_name>weather</server_name>\n<uri>weather://bern</uri>"),
        {"server_name": "weather", "uri": "weather://bern"},
    ),
    Form(
        element("ask_followup_question", '<question>Which?</question>\n<options>["a < b", "c"]</options>'),
        {"question": "Which?", "options": ["a < b", "c"]},
    ),
    Form(element("ask_followup_question", "<question>Which?</question>"), {"question": "Which?"}),
    Form(
        element("attempt_completion", "<result>\nDone: a < b.\n</result>\n<command>open index.html</command>"),
        {"result": "Done: a < b.", "command": "open index.html"},
    ),
    Form(
        element(
            "plan_mode_respond",
            "<response>I would compare a < b.</response>\n<needs_more_exploration>true</needs_more_exploration>",
        ),
        {"response": "I would compare a < b.", "needs_more_exploration": True},
    ),
    Form(
        element("plan_mode_respond", '<response>Which way?</response>\n<options>["one", "two"]</options>'),
        {"response": "Which way?", "options": ["one", "two"]},
    ),
    Form(element("act_mode_respond", "<response>Half done.</response>"), {"response": "Half done."}),
    Form(element("new_task", "<context>\n1. The cart: a < b\n</context>"), {"context": "1. The cart: a < b"}),
    Form(element("use_skill", "<skill_name>shop</skill_name>"), {"skill_name": "shop"}),
    Form(
        element("use_subagents", "<prompt_1>Look at a < b</prompt_1>\n<prompt_2>Look at c</prompt_2>"),
        {"prompt_1": "Look at a < b", "prompt_2": "Look at c"},
    ),
    Form(element("apply_patch", f"<input>\n{PATCH}\n</input>"), {"input": PATCH}),
)
CLINE = (
    *_CLINE,
    *(Form(with_progress(form.text), {**form.given, "task_progress": PROGRESS}) for form in _CLINE),
    Form("<load_mcp_documentation>\n</load_mcp_documentation>", {}),
    Form("<load_mcp_documentation></load_mcp_documentation>", {}),
    Form(element("focus_chain", f"<task_progress>\n{PROGRESS}\n</task_progress>"), {"task_progress": PROGRESS}),
    Form(
        element("generate_explanation", "<title>a < b</title>\n<from_ref>HEAD~1</from_ref>\n<to_ref>HEAD</to_ref>"),
        {"title": "a < b", "from_ref": "HEAD~1", "to_ref": "HEAD"},
    ),
    Form(element("condense", "<context>\na < b\n</context>"), {"context": "a < b"}),
    Form(element("summarize_task", "<context>\na < b\n</context>"), {"context": "a < b"}),
    Form(
        element(
            "report_bug",
            "<title>T</title>\n<what_happened>a < b</what_happened>\n<steps_to_reproduce>1. x</steps_to_reproduce>\n"
            "<api_request_output>none</api_request_output>\n<additional_context>none</additional_context>",
        ),
        {
            "title": "T",
            "what_happened": "a < b",
            "steps_to_reproduce": "1. x",
            "api_request_output": "none",
            "additional_context": "none",
        },
    ),
    Form(
        element("new_rule", "<path>.clinerules/tests.md</path>\n<content>\n# Tests: a < b\n</content>"),
        {"path": ".clinerules/tests.md", "content": "# Tests: a < b"},
    ),
)


def forms_of(client: XmlClient) -> list[Form]:
    """The documented forms of the tools that a client has."""
    family = client.name.partition("-")[0]
    rows = {"roo": ROO, "kilo": (*KILO, *ROO), "cline": CLINE}[family]
    return [form for form in rows if form.tool in client.tools]
