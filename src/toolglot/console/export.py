"""One session as one HTML file that opens offline: the session view, its data and everything that it needs.

*Strategy.* The modules of the page are joined into one script; each becomes a function that returns its exports. The
content security policy of the file allows this script and the styles by their hashes, and nothing else, so that text of
a model that found its way into the markup could do nothing. The data are JSON in a block that no browser executes, with
every ``<`` escaped. The file is made turn by turn, as fast as it is read: no more than one turn is in memory.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from functools import cache
from html import escape
from typing import Final

import toolglot
from toolglot.config import Settings
from toolglot.console import work
from toolglot.console.parameters import encode_json
from toolglot.console.static_files import PREFIX, VENDORED, hash_source, read_asset
from toolglot.console.turns import describe_turn, summarize
from toolglot.gateway.storage import describe_session
from toolglot.gateway.telemetry.record_writer import call_store
from toolglot.store.interface import RecordRow, SessionRow, Store

ENTRY: Final = "console/export_page.js"
STYLES: Final = ("console.css",)
MAX_BYTES: Final = 64 << 20
"""Bytes of turns in one file; later turns are left out, and the file says so."""
PIECE: Final = 1 << 18
IMPORT: Final = re.compile(r"""\bimport\s*(?:(\w+)\s*,?\s*)?(?:\{([^}]*)\}\s*)?from\s*["']([^"']+)["'];?""")
EXPORT_FROM: Final = re.compile(r"""\bexport\s*\{([^}]*)\}\s*from\s*["']([^"']+)["'];?""")
EXPORT_LIST: Final = re.compile(r"\bexport\s*\{([^}]*)\};?")
EXPORT_DEFAULT: Final = re.compile(r"\bexport\s+default\s+")
EXPORT_NAMED: Final = re.compile(r"(?m)^export\s+(?:async\s+)?(?:const|let|function\*?|class)\s+(\w+)")
BEFORE_DATA: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="toolglot {version}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="app"><noscript>This file needs JavaScript, which it brings along.</noscript></div>
<script type="application/json" id="data">"""
AFTER_DATA: Final = """</script>
<script type="module">{script}</script>
</body>
</html>
"""


async def export_session(
    store: Store, session: SessionRow, records: Sequence[RecordRow], settings: Settings
) -> AsyncGenerator[bytes, None]:
    """The file of a session, in pieces of at most ``PIECE`` bytes and some more. ``records`` are its records without
    bodies, oldest first. Raises: StoreError."""
    before, after = split_page(f"Session {session.id}")
    yield before + await work.queue(_write_beginning, session, records)
    written = size = 0
    for record in records:
        row = await call_store(store.get_record(None, record.id))
        if row is None:
            continue
        turn = await work.queue(_encode_turn, row, settings)
        size += len(turn)
        if size > MAX_BYTES:
            break
        turn, written = (b"," if written else b"") + turn, written + 1
        del row
        for at in range(0, len(turn), PIECE):
            yield turn[at : at + PIECE]
    yield b'},"left_out":%d}' % (len(records) - written) + after


def _write_beginning(session: SessionRow, records: Sequence[RecordRow]) -> bytes:
    """The data up to the first turn."""
    data = encode_json(
        {
            "version": toolglot.__version__,
            "exported": datetime.now(UTC).isoformat(timespec="seconds"),
            "session": describe_session(session),
            "summaries": [summarize(record) for record in records],
        }
    )
    return _escape_data(data.removesuffix(b"}") + b',"turns":{')


def _encode_turn(row: RecordRow, settings: Settings) -> bytes:
    """A turn with its id, as a part of the object of all turns."""
    return _escape_data(encode_json(row.id) + b":" + encode_json(describe_turn(row, settings)))


def _escape_data(data: bytes) -> bytes:
    return data.replace(b"<", b"\\u003c")


def write_page(title: str, data: bytes) -> bytes:
    """An HTML file with the session view and its data, which is JSON."""
    before, after = split_page(title)
    return before + _escape_data(data) + after


def split_page(title: str) -> tuple[bytes, bytes]:
    """The HTML file before and after its data."""
    style, script = _escape_end("\n".join(map(read_asset, STYLES))), bundle(ENTRY)
    policy = (
        f"default-src 'none'; script-src {hash_source(script)}; style-src {hash_source(style)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    before = BEFORE_DATA.format(policy=policy, version=toolglot.__version__, title=escape(title), style=style)
    return before.encode("utf-8", "replace"), AFTER_DATA.format(script=script).encode("utf-8", "replace")


def _escape_end(style: str) -> str:
    return style.replace("</", "<\\/")


# -- joining modules ---------------------------------------------------------------------------------------------------


@cache
def bundle(entry: str) -> str:
    """A module with everything that it imports, as one script."""
    written: dict[str, str] = {}

    def add(name: str) -> None:
        if name in written:
            return
        written[name] = ""
        source = read_asset(VENDORED[name] if name in VENDORED else name.removeprefix(PREFIX))
        for other in list_imports(source):
            add(other)
        del written[name]  # after what it imports
        written[name] = wrap(name, source)

    add(entry)
    script = "const modules = {};\n" + "".join(written.values())
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def list_imports(source: str) -> list[str]:
    found = [match[3] for match in IMPORT.finditer(source)]
    return [*found, *(match[2] for match in EXPORT_FROM.finditer(source))]


def wrap(name: str, source: str) -> str:
    """A module as a function that is called at once; ``modules`` holds what it exports."""
    exports: list[str] = []
    source = re.sub(r"(?m)^//# sourceMappingURL=.*$|//# sourceMappingURL=\S+$", "", source)
    for names, other in EXPORT_FROM.findall(source):
        exports += [f"{new}: modules[{other!r}].{old}" for old, new in read_names(names)]
    source = EXPORT_FROM.sub("", source)
    source = IMPORT.sub(write_import, source)
    for names in EXPORT_LIST.findall(source):
        exports += [f"{new}: {old}" for old, new in read_names(names)]
    source = EXPORT_LIST.sub("", source)
    exports += [f"{found}: {found}" for found in EXPORT_NAMED.findall(source)]
    source = re.sub(r"(?m)^export\s+(?=(?:async\s+)?(?:const|let|function|class)\b)", "", source)
    if EXPORT_DEFAULT.search(source):
        source = EXPORT_DEFAULT.sub("const default_export = ", source)
        exports.append("default: default_export")
    return f"modules[{name!r}] = (() => {{\n{source}\nreturn {{ {', '.join(exports)} }};\n}})();\n"


def write_import(match: re.Match[str]) -> str:
    default, names, other = match.groups()
    parts = [f"default: {default}"] if default else []
    parts += [old if old == new else f"{old}: {new}" for old, new in read_names(names or "")]
    return f"const {{ {', '.join(parts)} }} = modules[{other!r}];"


def read_names(names: str) -> list[tuple[str, str]]:
    """``a, b as c`` as pairs of the name inside and the name outside."""
    pairs = []
    for part in names.split(","):
        old, _, new = part.strip().partition(" as ")
        if old:
            pairs.append((old.strip(), (new or old).strip()))
    return pairs
