"""The assets: in the package, small, published files unchanged, loaded from nowhere else."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from support.console import opened_console
from support.gateway import run

from toolglot.console.static_files import PREFIX, VENDORED, load_assets, make_import_map, page_headers

STATIC = Path(__file__).parents[2] / "src" / "toolglot" / "console" / "static"
MAX_BYTES = 400 << 10
IMPORTED = re.compile(r"""(?:^|[;}])\s*(?:import|export)\b[^;'"()]*?from\s*["']([^"']+)["']""", re.MULTILINE)
HASHES = {
    "htm.js": "ab33dd3f38059b9b",
    "preact-hooks.js": "e862ab2973aa6455",
    "preact.js": "bdcbd9abdf2c77c5",
    "signals-core.js": "0c80bc127d72ecb1",
    "signals.js": "ba8177597f45acac",
    "uplot.css": "df630c6a8d6f8eea",
    "uplot.js": "5dd9b3281aa64b46",
}
"""Of the files in the npm packages that vendor/NOTICE.md names."""


def test_all_assets_are_small() -> None:
    assert sum(file.stat().st_size for file in STATIC.rglob("*") if file.is_file()) < MAX_BYTES


def test_published_files_are_unchanged() -> None:
    found = {file.name: sha256(file.read_bytes()).hexdigest()[:16] for file in (STATIC / "vendor").glob("*.*s*")}
    assert found == HASHES
    notice = (STATIC / "vendor" / "NOTICE.md").read_text("utf-8")
    assert all(f"| {name} |" in notice for name in HASHES)


def test_modules_import_only_what_is_there() -> None:
    for name, asset in load_assets().items():
        if name.endswith(".js"):
            for other in IMPORTED.findall(asset.body.decode()):
                assert other in VENDORED or other.removeprefix(PREFIX) in load_assets(), f"{name}: {other}"


def test_nothing_writes_markup() -> None:
    for name, asset in load_assets().items():
        if name.endswith(".js") and not name.startswith("vendor/"):
            found = re.findall(
                r"innerHTML|outerHTML|insertAdjacent|dangerously|document\.write|\beval\b|new Function",
                asset.body.decode(),
            )
            assert found == [], name


def test_the_policy_allows_nothing_foreign() -> None:
    policy = page_headers()["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http:" not in policy and "*" not in policy
    assert "console/" in make_import_map()


def test_assets_are_served_with_their_types_and_cached(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            for name, asset in load_assets().items():
                answer = await console.call(f"/console/assets/{name}")
                assert (answer.status, answer.headers["content-type"]) == (200, asset.content_type)
                assert answer.headers["x-content-type-options"] == "nosniff"
                again = await console.call(f"/console/assets/{name}", if_none_match=answer.headers["etag"])
                assert (again.status, again.body) == (304, b"")
            for path in ("../app.py", "%2e%2e/app.py", "nothing.js", "vendor"):
                assert (await console.call(f"/console/assets/{path}")).status == 404
            for path in ("/console", "/console/"):
                page = await console.call(path)
                assert page.headers["content-security-policy"] == page_headers()["content-security-policy"]

    run(test)


def test_the_console_can_be_switched_off() -> None:
    from toolglot.cli.serve import _choose_mount
    from toolglot.config import load

    assert _choose_mount(load({"console": "false"}, {})) is None
    assert _choose_mount(load({}, {})) is not None
