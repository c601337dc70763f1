"""How an optional part of toolglot is installed into the environment that runs it."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path


def name_install_command(extra: str) -> str:
    """The command that installs an extra, or several: from the checkout that toolglot was installed from, if any."""
    own = Path(sys.executable).parent
    pip = "pip" if Path(shutil.which("pip") or "").parent == own else f"{shlex.quote(sys.executable)} -m pip"
    folder, editable = _find_source()
    requirement = shlex.quote(f"{folder or 'toolglot'}[{extra}]")
    return f"{pip} install {'-e ' if editable else ''}{requirement}"


def _find_source() -> tuple[str, bool]:
    """The folder that toolglot was installed from, and whether it is used in place; empty for a package index."""
    from importlib.metadata import PackageNotFoundError, distribution  # imported only here: they are slow to load
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        source = json.loads(distribution("toolglot").read_text("direct_url.json") or "{}")
        url, editable = urlsplit(source.get("url", "")), source.get("dir_info", {}).get("editable", False)
    except (PackageNotFoundError, ValueError, AttributeError):
        return "", False
    folder = Path(url2pathname(url.path)) if url.scheme == "file" else None
    return (str(folder), bool(editable)) if folder and folder.is_dir() else ("", False)
