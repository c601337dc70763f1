"""A second writer of tool calls, for tests only.

It is written from the published formats of the models and shares nothing with the dialect records or ``toolglot.write``:
what both get wrong in the same way would otherwise go unseen. The values look like what agents write: files, pieces of
files, commands, and documents about tool calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

Arguments = list[tuple[str, Any]]


def tool(name: str, required: str, closed: bool = False, **properties: str) -> dict[str, Any]:
    """A tool whose parameters have these types."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": required.split(),
    }
    if closed:
        schema["additionalProperties"] = False
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS = [
    tool("write_to_file", "path content", path="string", content="string", encoding="string", overwrite="boolean"),
    tool("execute_command", "command", command="string", cwd="string", timeout="integer", background="boolean"),
    tool(
        "edit_file",
        "path old_string new_string",
        path="string",
        old_string="string",
        new_string="string",
        replace_all="boolean",
    ),
    tool("search_files", "path regex", path="string", regex="string", file_pattern="string", limit="integer"),
    tool("new_task", "mode message", mode="string", message="string"),
]
SHORT = {
    "path": ["src/app.ts", "a b/c.txt", "docs/ü.md", "C:\\x\\y.py", "pages/[id].vue"],
    "encoding": ["utf-8", "latin1"],
    "cwd": [".", "/srv/www", "my dir"],
    "file_pattern": ["*.ts", "**/*.{js,ts}", "[ab]*"],
    "mode": ["code", "architect"],
    "command": [
        "npm run build && echo done",
        "cat a.txt | grep -v '<b>' > b.txt",
        'python - <<EOF\nprint("x" if 1 < 2 else "y")\nEOF',
        "test $a -lt 3 || exit 1",
        "git commit -m 'Fix <Suspense> loop'",
        "sed -i 's#</path>#</file>#' a.xml",
        "<command> is no command",
        'echo \'{"name": "x", "arguments": {}}\'',
    ],
    "regex": [r"<(\w+)>.*</\1>", "foo|bar", r"\bList<\w+>", "</content>", "a{2,3}", "<path>", r"^\s*#include <"],
    "message": ["Go on.", "Use <b>bold</b> where\nit matters.", "Write `<content>` first; then </content>.", "x < y"],
}
EXTRA = {
    "line_count": ["1", "42"],
    "requires_approval": ["false", "true"],
    "explanation": ["Because it must.", "a < b, so <Suspense> waits", "two\nlines", "Uses List<String> & Map<K, V>"],
    "task_progress": ["- [x] one\n- [ ] two", "- [ ] <App/> renders"],
    "title": ["Hello", "A <b>title</b>"],
    "priority": ["high", "3"],
}
WORDS = ("alpha", "beta", "gamma", "delta", "file", "tool", "value", "note", "the", "of", "and", "über", "漢字", "🚀")


def prose(random: Random, size: int = 12) -> str:
    return " ".join(random.choice(WORDS) for _ in range(random.randint(1, size)))


FILES: list[str] = [
    "if (a < b) {{\n  return a<b;\n}}",
    "for (int i=0; i<n; i++) std::vector<std::pair<int, T>> v; // {0}",
    'export const f = <T extends Foo<U>>(x: T): Promise<Array<T>> => x as any; // "{0}"',
    "<!DOCTYPE html>\n<html>\n<head><title>{0}</title></head>\n<body>\n<p>{1}</p>\n<path d='M0 0'/>\n</body>\n</html>",
    '<?xml version="1.0"?>\n<project>\n  <path>{0}</path>\n  <content type="html">{1}</content>\n</project>',
    "<feed>\n<entry>\n<content>{0}</content>\n<updated>2024</updated>\n</entry>\n<entry>\n<content>{1}</content>\n"
    "<id>7</id>\n</entry>\n</feed>",
    "<path>{0}</path>\n<mode>x</mode> {1}",
    "<command>npm start</command> starts it: {0}",
    "<config>\n  <data><![CDATA[{0} < {1}]]></data>\n</config>",
    "<![CDATA[{0}]]> is how {1} is written",
    "<![CDATA[ opens a section; {0}",
    "# {0}\n\nSee `<parameter=path>` here, and {1}.\n",
    "# {0}\n\nUse `<content>` for {1}, and `<path>` before it.",
    '# {0}\n\nWrite `<parameter name="path">` and then {1}.',
    "# {0}\n\nA key is `<arg_key>path</arg_key>` and `<arg_value>` opens a value.",
    "Calls look like this:\n\n```xml\n<read_file>\n<path>{0}</path>\n</read_file>\n```\n\n{1}",
    "Calls look like this:\n\n<tool_call>\n<function=execute_command>\n<parameter=command>\n{0}\n</parameter>\n"
    "</function>\n</tool_call>\n\nAnd then {1}.",
    'Or:\n<function_calls>\n<invoke name="execute_command">\n<parameter name="command">{0}</parameter>\n</invoke>\n'
    "</function_calls>\n{1}",
    "Or:\n<tool_call>execute_command\n<arg_key>command</arg_key>\n<arg_value>{0}</arg_value>\n</tool_call>\n{1}",
    "Or:\n<execute_command>\n<command>{0}</command>\n</execute_command>\n\n{1}",
    'Or: <tool_call>\n{{"name": "execute_command", "arguments": {{"command": "{0}"}}}}\n</tool_call> {1}',
    '<|tool_call_begin|>functions.x:0<|tool_call_argument_begin|>{{"a": 1}}<|tool_call_end|> {0}',
    "[TOOL_CALLS]x[ARGS]{{}} {0}",
    "{0}</path>",
    "{0} </b></i> {1}",
    "</div>\n<span>{0}</span>\n{1}",
    "- <<<<<<< SEARCH\n:start_line:1\n-------\n{0}\n=======\n{1}\n>>>>>>> REPLACE",
    "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-<p>{0}</p>\n+<p>{1}</p>\n </div>",
    '{{\n  "name": "{0}",\n  "list": [1, 2.50, null, true],\n  "text": "a \\"quoted\\" word <b>"\n}}',
    "<template>\n  <div v-if=\"a < b\" :class='x'>{{{{ {0} }}}}</div>\n</template>\n\n<script setup>\nconst n = 1\n</script>",
    "{{% if x < 3 %}}<li>{{{{ x }}}}</li>{{% endif %}} <%= {0} %> ${{y}}",
    "<LinearLayout\n    android:id=\"@+id/x\">\n    <TextView android:text='{0}' />\n</LinearLayout>",
    "#include <vector>\nint main() {{ return 1 << 3 <= 9; }} // {0}",
    "\n\n{0}\n\n\n",
    "   indented {0}\n\ttabs\t{1}   ",
    "{0}\r\n{1}\r\n",
    "",
    "{0}",
    "```python\nprint('{0}')\n```",
    "'''{0}''' \"\"\"{1}\"\"\" \\n \\\\ \\t",
    "<think>{0}</think>\n{1}",
    "a &lt; b &amp;&amp; c &gt; d; &#39;{0}&#39;",
    '<｜DSML｜parameter name="x" string="true">{0}</｜DSML｜parameter> {1}',
    "SELECT * FROM t WHERE a<5 AND b<>'{0}';",
    "EOF\n{0}\n<<EOF",
    "{0}\n</details>",
]
"""File-like texts; ``{0}`` and ``{1}`` are filled with words."""


def write_file(random: Random) -> str:
    """A file-like text, sometimes made of several."""
    pieces = [random.choice(FILES).format(prose(random), prose(random)) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    return random.choice(("\n", "\n\n", " ")).join(pieces)


@dataclass(frozen=True)
class Written:
    """A call, and how it was written."""

    name: str
    arguments: Arguments
    text: str


def make_arguments(random: Random, entry: dict[str, Any], extras: bool) -> Arguments:
    """Arguments in any order: all required ones, some optional ones, and sometimes undeclared ones."""
    schema = entry["function"]["parameters"]
    keys = [key for key in schema["properties"] if key in schema["required"] or random.random() < 0.4]
    if extras:
        keys += random.sample(sorted(EXTRA), random.choice((1, 1, 2)))
    if random.random() < 0.7:
        random.shuffle(keys)
    return [(key, make_value(random, key, schema["properties"].get(key, {}).get("type", ""))) for key in keys]


def make_value(random: Random, key: str, kind: str) -> Any:
    if kind == "integer":
        return random.choice((0, 7, -3, 120000))
    if kind == "boolean":
        return random.random() < 0.5
    if key in ("content", "old_string", "new_string") or (key in ("message", "command") and random.random() < 0.4):
        return write_file(random)
    return random.choice({**SHORT, **EXTRA}[key])


# -- the formats -------------------------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def roo_xml(name: str, arguments: Arguments, _: Random) -> str:
    """Files on lines of their own, other values without their outer blanks."""
    body = "".join(
        f"<{key}>\n{text_of(value)}\n</{key}>\n"
        if key in ("content", "old_string", "new_string")
        else f"<{key}>{text_of(value).strip()}</{key}>\n"
        for key, value in arguments
    )
    return f"<{name}>\n{body}</{name}>"


def qwen3_coder(name: str, arguments: Arguments, _: Random) -> str:
    body = "".join(f"<parameter={key}>\n{text_of(value)}\n</parameter>\n" for key, value in arguments)
    return f"<tool_call>\n<function={name}>\n{body}</function>\n</tool_call>"


def openhands(name: str, arguments: Arguments, _: Random) -> str:
    body = "".join(f"<parameter={key}>\n{text_of(value)}\n</parameter>\n" for key, value in arguments)
    return f"<function={name}>\n{body}</function>"


def seed_oss(name: str, arguments: Arguments, _: Random) -> str:
    body = "".join(f"<parameter={key}>{text_of(value)}</parameter>\n" for key, value in arguments)
    return f"<seed:tool_call>\n<function={name}>\n{body}</function>\n</seed:tool_call>"


def _invoke(wrapper: str, name: str, arguments: Arguments) -> str:
    body = "".join(f'<parameter name="{key}">{text_of(value)}</parameter>\n' for key, value in arguments)
    return f'<{wrapper}>\n<invoke name="{name}">\n{body}</invoke>\n</{wrapper}>'


def anthropic(name: str, arguments: Arguments, _: Random) -> str:
    return _invoke("function_calls", name, arguments)


def minimax_m2(name: str, arguments: Arguments, _: Random) -> str:
    return _invoke("minimax:tool_call", name, arguments)


def minimax_m3(name: str, arguments: Arguments, _: Random) -> str:
    sign = "]<]minimax[>["
    body = "".join(f"{sign}<{key}>{text_of(value)}{sign}</{key}>" for key, value in arguments)
    return f'{sign}<tool_call>\n{sign}<invoke name="{name}">{body}{sign}</invoke>\n{sign}</tool_call>'


def glm45(name: str, arguments: Arguments, _: Random) -> str:
    body = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{text_of(value)}</arg_value>\n" for key, value in arguments)
    return f"<tool_call>{name}\n{body}</tool_call>"


def glm47(name: str, arguments: Arguments, _: Random) -> str:
    body = "".join(f"<arg_key>{key}</arg_key><arg_value>{text_of(value)}</arg_value>" for key, value in arguments)
    return f"<tool_call>{name}{body}</tool_call>"


def dsml_v4(name: str, arguments: Arguments, _: Random) -> str:
    body = "".join(
        f'<｜DSML｜parameter name="{key}" string="{json.dumps(isinstance(value, str))}">{text_of(value)}'
        "</｜DSML｜parameter>\n"
        for key, value in arguments
    )
    return f'<｜DSML｜tool_calls>\n<｜DSML｜invoke name="{name}">\n{body}</｜DSML｜invoke>\n</｜DSML｜tool_calls>'


def step3(name: str, arguments: Arguments, _: Random) -> str:
    body = "".join(
        f'<steptml:parameter name="{key}">{text_of(value)}</steptml:parameter>\n' for key, value in arguments
    )
    return (
        f'<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">\n{body}'
        "</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>"
    )


def minicpm5(name: str, arguments: Arguments, _: Random) -> str:
    body = "".join(
        f'<param name="{key}"><![CDATA[{text_of(value).replace("]]>", "]]]]><![CDATA[>")}]]></param>'
        if isinstance(value, str)
        else f'<param name="{key}">{text_of(value)}</param>'
        for key, value in arguments
    )
    return f'<function name="{name}">{body}</function>'


def kimi_k3(name: str, arguments: Arguments, _: Random) -> str:
    kinds = {str: "string", bool: "boolean", int: "integer"}
    body = "".join(
        f'<|open|>argument key="{key}" type="{kinds[type(value)]}"<|sep|>{text_of(value)}<|close|>argument<|sep|>'
        for key, value in arguments
    )
    call = f'<|open|>call tool="{name}" index="1"<|sep|>{body}<|close|>call<|sep|>'
    return f"<|open|>tools<|sep|>{call}<|close|>tools<|sep|>"


def _dump(value: Any, random: Random) -> str:
    return json.dumps(value, ensure_ascii=random.random() < 0.3, indent=random.choice((None, None, 2)))


def _object(name: str, arguments: Arguments, random: Random, key: str = "arguments") -> str:
    return _dump({"name": name, key: dict(arguments)}, random)


def hermes(name: str, arguments: Arguments, random: Random) -> str:
    return f"<tool_call>\n{_object(name, arguments, random)}\n</tool_call>"


def kimi_k2(name: str, arguments: Arguments, random: Random) -> str:
    call = f"<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{_dump(dict(arguments), random)}"
    return f"<|tool_calls_section_begin|>{call}<|tool_call_end|><|tool_calls_section_end|>"


def mistral_args(name: str, arguments: Arguments, random: Random) -> str:
    return f"[TOOL_CALLS]{name}[ARGS]{_dump(dict(arguments), random)}"


def mistral_array(name: str, arguments: Arguments, random: Random) -> str:
    return f"[TOOL_CALLS] [{_object(name, arguments, random)}]"


def harmony(name: str, arguments: Arguments, random: Random) -> str:
    head = f"<|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
    return f"{head}{_dump(dict(arguments), random)}<|call|>"


def deepseek_v31(name: str, arguments: Arguments, random: Random) -> str:
    call = f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{_dump(dict(arguments), random)}<｜tool▁call▁end｜>"
    return f"<｜tool▁calls▁begin｜>{call}<｜tool▁calls▁end｜>"


def llama3_json(name: str, arguments: Arguments, random: Random) -> str:
    return _object(name, arguments, random, "parameters")


def bare_json(name: str, arguments: Arguments, random: Random) -> str:
    return _object(name, arguments, random)


def fenced_json(name: str, arguments: Arguments, random: Random) -> str:
    return f"```json\n{_object(name, arguments, random)}\n```"


def pythonic(name: str, arguments: Arguments, _: Random) -> str:
    return f"[{name}({', '.join(f'{key}={value!r}' for key, value in arguments)})]"


def gemma4(name: str, arguments: Arguments, _: Random) -> str:
    body = ",".join(
        f'{key}:<|"|>{value}<|"|>' if isinstance(value, str) else f"{key}:{json.dumps(value)}"
        for key, value in arguments
    )
    return f"<|tool_call>call:{name}{{{body}}}<tool_call|>"


Format = Callable[[str, Arguments, Random], str]
MARKUP: dict[str, Format] = {
    write.__name__: write
    for write in (
        roo_xml,
        qwen3_coder,
        openhands,
        seed_oss,
        anthropic,
        minimax_m2,
        minimax_m3,
        glm45,
        glm47,
        dsml_v4,
        step3,
        minicpm5,
        kimi_k3,
    )
}
OTHERS: dict[str, Format] = {
    write.__name__: write
    for write in (
        hermes,
        kimi_k2,
        mistral_args,
        mistral_array,
        harmony,
        deepseek_v31,
        llama3_json,
        bare_json,
        fenced_json,
        pythonic,
        gemma4,
    )
}
FORMATS = {**MARKUP, **OTHERS}
"""Everything that writes, by the name of its dialect; ``MARKUP`` marks each parameter up as raw text."""


def expect(dialect: str, arguments: Arguments) -> Arguments:
    """What must be read: with raw text an undeclared argument is text, and some layout is the format's."""
    declared = {key for entry in TOOLS for key in entry["function"]["parameters"]["properties"]}
    expected: Arguments = []
    for key, value in arguments:
        if dialect in MARKUP and key not in declared:
            value = text_of(value)
        if dialect == "roo_xml" and isinstance(value, str) and key not in ("content", "old_string", "new_string"):
            value = value.strip()
        expected.append((key, value))
    return expected


def make_call(dialect: str, random: Random, extras: bool) -> Written:
    """One call in the format of a dialect."""
    entry = random.choice(TOOLS)
    name = entry["function"]["name"]
    arguments = make_arguments(random, entry, extras)
    return Written(name, expect(dialect, arguments), FORMATS[dialect](name, arguments, random))
