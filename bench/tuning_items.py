"""Requests and tasks with which the teaching of small models is tuned; those of ``local.py`` and ``agent_tasks.py``
measure it."""

from __future__ import annotations

from agent_tasks import Task
from local import tool

TOOLS = [
    tool("get_time", "Get the current local time in a city.", city="Name of the city"),
    tool("stock_price", "Get the latest price of a share.", symbol="Ticker symbol of the company"),
    tool("send_mail", "Send an e-mail.", to="Address of the recipient", text="Text of the mail"),
    tool("read_file", "Read the contents of a file.", path="Path of the file"),
    tool("write_file", "Write text to a file.", path="Path of the file", content="Text to write"),
    tool("list_folder", "List the files of a folder.", folder="Path of the folder"),
    tool("delete_file", "Delete a file.", path="Path of the file"),
    tool("translate", "Translate a text into another language.", text="Text to translate", language="Target language"),
]
REQUESTS: list[tuple[str, str, dict[str, str]]] = [
    ("What time is it in Hanoi?", "get_time", {"city": "Hanoi"}),
    ("Is it already evening in Denver?", "get_time", {"city": "Denver"}),
    ("How late is it in Perth now?", "get_time", {"city": "Perth"}),
    ("What does a share of AAPL cost?", "stock_price", {"symbol": "AAPL"}),
    ("Has TSLA gone up today?", "stock_price", {"symbol": "TSLA"}),
    ("Tell me the price of NVDA.", "stock_price", {"symbol": "NVDA"}),
    (
        "Write to bob@example.org: the train is late",
        "send_mail",
        {"to": "bob@example.org", "text": "the train is late"},
    ),
    (
        "Send a mail to eva@example.net with the text See you at six",
        "send_mail",
        {"to": "eva@example.net", "text": "See you at six"},
    ),
    ("What is in the folder photos?", "list_folder", {"folder": "photos"}),
    ("Show me the files in src/utils.", "list_folder", {"folder": "src/utils"}),
    ("Please remove old.log", "delete_file", {"path": "old.log"}),
    ("Get rid of the file tmp/cache.bin", "delete_file", {"path": "tmp/cache.bin"}),
    ("Translate good evening into Polish.", "translate", {"text": "good evening", "language": "Polish"}),
    (
        "How do you say thank you very much in Finnish?",
        "translate",
        {"text": "thank you very much", "language": "Finnish"},
    ),
    ("What does letter.txt say?", "read_file", {"path": "letter.txt"}),
    ("Open docs/plan.md.", "read_file", {"path": "docs/plan.md"}),
    ("Make a file info.txt with the words see below", "write_file", {"path": "info.txt", "content": "see below"}),
    ("Write yes to the file flag.txt.", "write_file", {"path": "flag.txt", "content": "yes"}),
    ("Store the text call Tom in memo.txt", "write_file", {"path": "memo.txt", "content": "call Tom"}),
]
SMALL_TALK = [
    "Hi there!",
    "What is seven times six?",
    "Thanks a lot.",
    "Write a short poem about rain.",
    "What can you do?",
]
TASKS = [
    Task(
        "create a note",
        "Make a new file reminder.txt that says: call the dentist",
        {"old.txt": "nothing\n"},
        {"reminder.txt": ("call the dentist",)},
    ),
    Task(
        "create three",
        "Create the files x.md, y.md and z.md, each with its own name without .md as the text.",
        {},
        {"x.md": ("x",), "y.md": ("y",), "z.md": ("z",)},
    ),
    Task(
        "look up an owner",
        "Who is the owner in package.yaml?",
        {"package.yaml": "name: tools\nowner: ferris\nlicence: MIT\n"},
        answer=("ferris",),
    ),
    Task(
        "compare two files",
        "Which of the two files jan.txt and feb.txt has the higher total?",
        {"jan.txt": "total: 310\n", "feb.txt": "total: 290\n"},
        answer=("jan",),
    ),
    Task(
        "look into a folder",
        "What is in the only file of the folder inbox?",
        {"inbox/message.txt": "The meeting is at noon.\n"},
        answer=("noon",),
    ),
    Task(
        "raise a limit",
        "Set max_users to 50 in limits.conf.",
        {"limits.conf": "max_users = 20\nmax_files = 100\n"},
        {"limits.conf": ("max_users = 50\nmax_files = 100",)},
    ),
    Task(
        "rename a variable",
        "In loop.py rename the variable cnt to count.",
        {"loop.py": "cnt = 0\nwhile cnt < 3:\n    cnt += 1\n"},
        {"loop.py": ("count = 0\nwhile count < 3:\n    count += 1",)},
    ),
    Task(
        "fix a greeting",
        "hello.js must print 'Good morning'. Fix it.",
        {"hello.js": "console.log('Good evening');\n"},
        {"hello.js": ("console.log('Good morning');",)},
    ),
    Task(
        "add an entry",
        "Add the line 'dave' behind the last line of team.txt.",
        {"team.txt": "alice\nbob\ncarol\n"},
        {"team.txt": ("alice\nbob\ncarol\ndave",)},
    ),
    Task(
        "take a title over",
        "Write the title of book.json into title.txt, nothing else.",
        {"book.json": '{"title": "Dune", "pages": 412}\n'},
        {"title.txt": ("Dune",)},
    ),
    Task(
        "remove a line",
        "Delete the line with DEBUG from .env.",
        {".env": "PORT=80\nDEBUG=1\nHOST=web\n"},
        {".env": ("PORT=80\nHOST=web",)},
    ),
    Task(
        "follow instructions",
        "Follow the instructions in steps.md.",
        {"steps.md": "Write the word ready to the file state.txt.\n"},
        {"state.txt": ("ready",)},
    ),
    Task(
        "copy a word",
        "Copy the colour named in paint.txt into the new file colour.txt.",
        {"paint.txt": "The wall is teal.\n"},
        {"colour.txt": ("teal", "The wall is teal.")},
    ),
    Task(
        "change two files",
        "Replace staging by production in both web.ini and api.ini.",
        {"web.ini": "env = staging\nworkers = 2\n", "api.ini": "env = staging\ndebug = no\n"},
        {"web.ini": ("env = production\nworkers = 2",), "api.ini": ("env = production\ndebug = no",)},
    ),
    Task(
        "count names",
        "How many names are in guests.txt?",
        {"guests.txt": "Ada\nBen\nCleo\nDov\nEli\n"},
        answer=("5",),
    ),
    Task(
        "fix a bug",
        "The function half in half.py must return half of its argument. Repair it.",
        {"half.py": "def half(x):\n    return x - 2\n"},
        {"half.py": ("def half(x):\n    return x / 2",)},
    ),
    Task(
        "swap a word",
        "In motd.txt say Monday instead of Tuesday.",
        {"motd.txt": "Closed on Tuesday.\nOpen otherwise.\n"},
        {"motd.txt": ("Closed on Monday.\nOpen otherwise.",)},
    ),
    Task(
        "smallest number",
        "Save the smallest of the numbers in values.txt to low.txt, only the number.",
        {"values.txt": "31\n8\n77\n"},
        {"low.txt": ("8",)},
    ),
]
