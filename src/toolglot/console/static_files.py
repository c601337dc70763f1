"""The assets of the console and the headers that they are sent with.

*Strategy.* There is no build step. Modules import each other by names (``console/lib/api.js``, ``preact``), which an
import map in the page resolves to paths; ``export`` resolves the same names within one file. The map is the only inline
script, and the content security policy names its hash.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

import msgspec

ROOT: Final = "/console/assets/"
PREFIX: Final = "console/"
"""How modules of the console name each other."""
VENDORED: Final = {
    "preact": "vendor/preact.js",
    "preact/hooks": "vendor/preact-hooks.js",
    "htm": "vendor/htm.js",
    "@preact/signals-core": "vendor/signals-core.js",
    "@preact/signals": "vendor/signals.js",
    "uplot": "vendor/uplot.js",
}
"""Published packages, by the names that they are imported by; static/vendor/NOTICE.md lists versions and licences."""
TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
    ".md": "text/plain; charset=utf-8",
}
IMPORT_MAP: Final = "@IMPORT_MAP@"
PRELOADS: Final = "@PRELOADS@"
LOADED_LATER: Final = ("app.js", "export_page.js", VENDORED["uplot"])
"""Modules that the page names itself, or that only some views need."""
COMMON_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
API_HEADERS: Final = {**COMMON_HEADERS, "cache-control": "no-store"}


class Asset(NamedTuple):
    body: bytes
    content_type: str
    etag: str


@cache
def load_assets() -> Mapping[str, Asset]:
    """All assets, by their paths below ``static``."""
    found: dict[str, Asset] = {}

    def walk(folder: Traversable, path: str) -> None:
        for entry in folder.iterdir():
            name = path + entry.name
            if entry.is_dir():
                walk(entry, name + "/")
            elif (kind := TYPES.get("." + entry.name.rpartition(".")[2])) is not None:
                body = entry.read_bytes()
                found[name] = Asset(body, kind, f'"{sha256(body).hexdigest()[:20]}"')

    walk(files(__package__) / "static", "")
    return found


def read_asset(name: str) -> str:
    return load_assets()[name].body.decode()


@cache
def make_import_map() -> str:
    imports = {PREFIX: ROOT, **{name: ROOT + path for name, path in VENDORED.items()}}
    return msgspec.json.encode({"imports": imports}).decode()


@cache
def make_page() -> Asset:
    """The page, with the import map and the preloads in it."""
    text = read_asset("index.html").replace(IMPORT_MAP, make_import_map()).replace(PRELOADS, list_preloads())
    return Asset(text.encode(), TYPES[".html"], f'"{sha256(text.encode()).hexdigest()[:20]}"')


def list_preloads() -> str:
    """Links that load all modules at once, instead of each when the one before it names it."""
    names = sorted(name for name in load_assets() if name.endswith(".js") and name not in LOADED_LATER)
    return "\n".join(f'<link rel="modulepreload" href="{ROOT}{name}">' for name in names)


@cache
def page_headers() -> Mapping[str, str]:
    """The headers of the page: nothing is loaded or sent but from and to the console itself."""
    policy = {
        "default-src": "'none'",
        "script-src": f"'self' {hash_source(make_import_map())}",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    text = "; ".join(f"{name} {sources}" for name, sources in policy.items())
    return {**COMMON_HEADERS, "content-security-policy": text, "cache-control": "no-cache"}


def hash_source(text: str) -> str:
    """The source of a content security policy that allows one inline script or style."""
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
