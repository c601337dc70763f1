"""Phrases that introduce an example, sentences that only contain such words, and the time of the search."""

from __future__ import annotations

from itertools import product
from time import process_time

import pytest
from support.rows import in_one_test

import toolglot
from toolglot.core.events import CallEnded, TextDelta
from toolglot.dialects.event_buffer import TAIL_SIZE
from toolglot.reading.example_detection import announces_example

VERBS = (
    "Now let me run",
    "Let me check",
    "I'll create",
    "I will now update",
    "I'm going to read",
    "I need to fix",
    "Next, open",
    "Let's look at",
    "First I'll fill in",
    "Reading",
    "Now",
    "Ich lese jetzt",
    "让我看看",
)
OBJECTS = (
    "the example",
    "an example",
    "the examples",
    "the example file",
    "the example config in `examples/`",
    "the placeholder",
    "the placeholder value",
    "the sample call handler",
    "what the test printed",
    "what you said",
    "the transcript",
    "the file that the user wrote",
    "the log, which looks like garbage",
    "the usage text",
    "the format that is used for instance by the parser",
    "the syntax tree",
    "the template",
    "the file I wrote for example.com",
    "the function call in the example",
    "the tool usage report",
    "the format",
    "the sample",
)
ENDS = (":", ".", ":\n\n", ".\n", "\n", "", ": ", " now:\n", "...\n\n")

SENTENCES = (
    "Let me see what this format looks like:",
    "I'll see what the format is:",
    "I need to know what a call looks like:",
    "As I said, I'll read it:",
    "Let me check the values, as in the other file:",
    "I will read the file that they came in:",
    "The test printed an error, let me look:",
    "The user wrote that it fails. I'll check:",
    "It looks like the file is missing, so I'll create it:",
    "It looks like this is the cause. Let me check:",
    "It looks like the example is broken:",
    "This looks like a bug:",
    "I could look at the config:",
    "There are several files, for example the parser, so let me read it:",
    "For example, the parser fails. Let me look at it:",
    "For example, let me check the first file:",
    "There are problems (e.g. in the parser). Reading it:",
    "Some files, e.g. the parser, fail, so I'll read it:",
    "I'll change it so that it looks like this:",
    "I'll write it so that the output looks like the example:",
    "As you can see, the example is wrong. I'll correct it:",
    "You said that the format is wrong, so I'll fix it:",
    "The format is wrong:",
    "The format is JSON, so I'll write it:",
    "I'll make a helper that you can use:",
    "I'll write the file so that you can call it:",
    "Now that I know what the format is, I'll write it:",
    "The script printed nothing:",
    "Here is the example:",
    "Here is the call:",
    "Here's the updated example file:",
    "Here are the changes you asked for:",
    "I'll provide an example configuration:",
    "I'll add an example of the config:",
    "I'll do it like this:",
    "I will call the tool as follows:",
    "I'll use the following call:",
    "Using the requested format:",
    "The transcript said so:",
    "Given the usage:",
    "The example usage has an error:",
    "I'll look at what is used, for example.",
    "Let me see what the file looks like:",
    "See what the config looks like:",
    "Let me check how the request would look like:",
    "Let me see an example:",
    "The example:",
    "Template:",
    "The project structure is as follows:",
    "You need to use the tool:",
    "You should make the script executable:",
    "For example, in the first test the value is wrong:",
    "The tool will be called as follows:",
    "This looks like it:",
    "The user said:",
    "```\nexample\n```\nDone. Now the next:",
    "例如，我先读取配置文件：",
    "让我运行这个例子：",
    "我来读取示例文件：",
    "Ich lese die Beispieldatei:",
    "Als Nächstes das Beispiel im Ordner:",
    "Voy a leer el ejemplo:",
    "我来读取文件，例如这个：",
    "To fix this, I'll write it again:",
    "If the test fails, I'll read the log:",
    "You can see this in the example, so I open it:",
    "The example shows that it fails:",
    "The correct call is:",
    "Let me take a look at this example:",
    "Now that you can use it, let me run it:",
    "It is used by the example. Reading it:",
    "A typical example of bad code. Let me fix it:",
    "Lo hago así:",
    "Je procède comme suit :",
    "Ich mache es so:",
    "I'll search for the phrase 'for example':",
    'Replacing the words "for instance":',
    "I'll search the docs for “as an example”:",
    "The heading is `the format is`:",
    "搜索“例如”：",
    "Ich ändere das Format:",
    "Leo el ejemplo de la carpeta:",
    "Запускаю пример сервера:",
    "Ich suche ein Beispiel für einen Aufruf:",
    "Je cherche un exemple d'appel :",
    "Leo un ejemplo de llamada:",
    "Ищу пример вызова функции:",
    "我来写这个格式的文件：",
    "この形式のファイルを作成します：",
    "a > b:\n>",
)
"""Sentences of models that mean the call behind them."""

INTRODUCTIONS = (
    "For example, a call looks like this:",
    "Such a call would look like:",
    "A tool call has this form:",
    "Use the following format:",
    "Let me show you what a call looks like:",
    "For example:",
    "For example,",
    "For instance:",
    "for example: ",
    "For example, I would call it, like so: \n\n",
    "For example, to read a file you would write:",
    "You could write this: ",
    "You would send:",
    "To read a file, you could use:",
    "To look something up one would write:",
    "The model could then write:",
    "with a tool, e.g. ",
    "with a tool, E.G.:\n",
    "A call looks like this:",
    "A call looks like this:\n\n",
    "A tool call would look like this:",
    "It looks like this: ",
    "It would look like:",
    "The leaked line looks like this:",
    "The format is:",
    "The format is as follows:",
    "The syntax of it is:\n",
    "The correct format for a call is:",
    "Its syntax is:",
    "I only explain what a call looks like:",
    "I'll show you an example:",
    "Let me give you an example:",
    "Here is an example:",
    "Here's an example call:",
    "Here is an example of a tool call:",
    "Here is an example of how to read a file:",
    "This is an example:",
    "As an example:",
    "An example:",
    "Use `<read>` to read a file, as in:\n\n    ",
    "A file is read with a tag, as in: ",
    "Example:",
    "Example:\n",
    "**Example:**\n",
    "### Example\n\n",
    "Example 1:\n",
    "Example call:\n",
    "Example usage:\n\n",
    "Some text.\n\nExample:\n",
    "Usage\n\n",
    "Usage:\n",
    "Syntax:\n",
    "Sample call:\n",
    "text\n## **Examples** \n",
    "The model wrote:\n\n",
    "zum Beispiel:",
    "Zum Beispiel:\n",
    "Beispiel:\n",
    "Ein Aufruf sieht so aus:",
    "Das Format ist:",
    "Por ejemplo:",
    "Ejemplo:",
    "Par exemple :",
    "Например:",
    "例如：",
    "比如：",
    "比如这个：",
    "\n示例：",
    "格式如下：",
    "例えば：",
    "예를 들어:",
    "I can explain that. Example:",
    "Sure! Usage:",
    "Usage example:",
    "The usage is:",
    "To illustrate:",
    "By way of illustration:",
    "You'd write:",
    "You can write:",
    "You call it like this:",
    "You can use it like this:",
    "It is used like this:",
    "The tool is called as follows:",
    "To call the tool, write:",
    "If you want to read a file, write:",
    "If I wanted to read the file, I would write:",
    "If you wanted to read it, you would send:",
    "An example would be:",
    "An example of a call is:",
    "A typical call is:",
    "A valid tool call would be:",
    "A valid call looks like:",
    "Calls look like this:",
    "In general, a call looks like this:",
    "In this format, a call is written as:",
    "The model writes its calls like this:",
    "The documentation gives this example:",
    "The following is an example of a call:",
    "The following example shows a call:",
    "Below is an example:",
    "This is just an example, do not run it:",
    "This is what it looks like:",
    "Consider this example:",
    "Suppose you write:",
    "Imagine the model writes:",
    "Hier ist ein Beispiel:",
    "Hier ist ein Beispiel für einen Werkzeugaufruf:",
    "Voici un exemple d'appel d'outil :",
    "Aquí tienes un ejemplo de llamada a la herramienta:",
    "Aqui está um exemplo de chamada:",
    "Ecco un esempio di chiamata:",
    "Вот пример вызова инструмента:",
    "Ein Beispiel:",
    "Man würde schreiben:",
    "Aquí hay un ejemplo:",
    "El formato es el siguiente:",
    "Una llamada se ve así:",
    "Voici un exemple :",
    "Un appel ressemble à ceci :",
    "这是一个例子：",
    "下面是一个示例：",
    "你可以这样写：",
    "To call a tool you write:",
    "The format I use for tool calls is the following:",
    "Example response:",
    "Sample output:",
    "Ich verwende dieses Format:",
    "Das Format der Aufrufe ist folgendes:",
    "Beispiel für eine Antwort:",
    "El formato de las llamadas es el siguiente:",
    "Una llamada tiene este aspecto:",
    "Uso este formato:",
    "Así se ve la llamada:",
    "Ejemplo de respuesta:",
    "O formato das chamadas é o seguinte:",
    "Il formato delle chiamate è il seguente:",
    "Le format des appels est le suivant :",
    "Вызов инструмента выглядит так:",
    "Я использую такой формат:",
    "Пример ответа сервера:",
    "可以这样写：",
    "服务器响应示例：",
    "ツールを呼び出す形式は次のとおりです：",
    "私はこの形式を使います：",
    "サーバーの応答例：",
)
"""Texts that introduce an example."""

NEITHER = (
    "forexample:",
    "You write it, ",
    "my usage:",
    "an example of it\n:",
    "",
    "\n\n",
    "I will read it.\n",
)

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]
WRITTEN = {
    "roo_xml": "<read_file>\n<path>a.py</path>\n</read_file>",
    "bare JSON": '{"name": "read_file", "arguments": {"path": "a.py"}}',
    "fenced JSON": '```json\n{"name": "read_file", "arguments": {"path": "a.py"}}\n```',
    "hermes": '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=read_file>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>",
}
MARKED = ("hermes", "qwen3_coder")
LEADS = (
    *("The corrected file looks like this:", "The test looks like this:", "Usage:", "Here is a minimal example:"),
    *("The file has this format:", "The request looks like this:", "Example:", "The syntax is:", "As an example:"),
)
"""Words that also precede the last call of an answer, which is meant."""


def generate_meant() -> list[str]:
    """Sentences made of a verb, an object that holds a word of examples, and an end."""
    made = [f"{verb} {thing}{end}" for verb, thing, end in product(VERBS, OBJECTS, ENDS)]
    return [*made, *(sentence + end for sentence, end in product(SENTENCES, ("", "\n", "\n\n")))]


def test_an_intended_call_is_read_whatever_precedes_it() -> None:
    assert [text for text in generate_meant() if announces_example(text)] == []


@in_one_test("text", INTRODUCTIONS)
def test_examples_are_introduced(text: str) -> None:
    assert announces_example(text)
    assert announces_example(f"I can call tools. They are read from my answer.\n\n{text}")


@in_one_test("text", NEITHER)
def test_other_texts_introduce_nothing(text: str) -> None:
    assert not announces_example(text)


@pytest.mark.parametrize("way", WRITTEN)
def test_meant_calls_are_read_and_examples_are_not(way: str) -> None:
    """Behind a text the fence of JSON must begin a line."""
    written = WRITTEN[way]
    breaks = ":\n", ".\n", ":\n\n"
    meant = [f"{verb} {thing}{end}" for verb, thing, end in product(VERBS[:4], OBJECTS, breaks)]
    for answer_text in [*meant, *(f"{sentence}\n" for sentence in SENTENCES if "```" not in sentence)]:
        assert [call.arguments for call in toolglot.read(answer_text + written, TOOLS).calls] == ['{"path":"a.py"}'], (
            answer_text
        )
    for answer_text in INTRODUCTIONS:
        for behind in ("\n\nThat is all.", *(() if way in MARKED else ("",))):
            text = f"{answer_text}\n{written}{behind}"
            reading = toolglot.read(text, TOOLS)
            assert (reading.calls, reading.text) == ([], text), answer_text


@pytest.mark.parametrize("way", MARKED)
def test_a_marked_call_that_ends_the_answer_is_delivered_whatever_precedes_it(way: str) -> None:
    for introduction in (text for text in (*INTRODUCTIONS, *LEADS) if "do not run" not in text):
        for chunks in ([f"{introduction}\n\n{WRITTEN[way]}"], [*f"{introduction}\n\n", *WRITTEN[way], "\n"]):
            reader = toolglot.Reader(TOOLS)
            events = [*(event for chunk in chunks for event in reader.feed(chunk)), *reader.close()]
            assert [type(event) for event in events].count(CallEnded) == 1, introduction
            assert "".join(e.text for e in events if isinstance(e, TextDelta)).strip() == introduction.strip()


@pytest.mark.parametrize("way", WRITTEN)
@pytest.mark.parametrize("prefix", ["> ", "  > > "])
def test_a_call_in_a_block_quote_is_text(prefix: str, way: str) -> None:
    lines = WRITTEN[way].replace("\n", "") if way != "fenced JSON" else WRITTEN[way].replace("\n", f"\n{prefix}")
    text = f"Let me quote the manual:\n\n{prefix}{lines}"
    reading = toolglot.read(text, TOOLS)
    assert (reading.calls, reading.text) == ([], text)


@pytest.mark.parametrize("way", WRITTEN)
def test_every_call_of_an_example_is_shown(way: str) -> None:
    text = f"For example:\n\n{WRITTEN[way]}\n\n{WRITTEN[way]}\n\nThat is all."
    reading = toolglot.read(text, TOOLS)
    assert (reading.calls, reading.text) == ([], text)


@in_one_test("unit", ["\n", "example\n", " \n x", "for example ", "é:", "looks like: ", "-", "\n例 ", "the ", "a "])
def test_a_look_takes_no_time(unit: str) -> None:
    for text in (unit * TAIL_SIZE, unit * TAIL_SIZE + "x:"):
        begun = process_time()
        for _ in range(200):
            announces_example(text)
        assert process_time() - begun < 0.2
