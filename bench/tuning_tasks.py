"""Tasks on real files with which the teaching of small models is tuned; those of ``agent_tasks.py`` measure it."""

from __future__ import annotations

from agent_tasks import Task

TUNING_TASKS = [
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
]
