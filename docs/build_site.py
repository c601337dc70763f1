"""Build the documentation site: ``make docs``, or ``python docs/build_site.py``. Needs the extra ``docs``.

Pages stay where they are in the repository, so that their links work there too. This script copies them into
``build/pages``, runs Zensical in strict mode (a missing page or anchor is an error), and checks the pages in
``build/site``: every address leads somewhere, nothing is loaded from another host, no Markdown was left as it is.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^ *(```+).*?^ *\1", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)|(?:src|srcset)=\"(?![a-z]+:)([^\"\s]+)")
LIST_ITEM = re.compile(r"\d+\. ")
INDENTED = "   "
UNRENDERED = re.compile(r"```|^\s*(?:[-*] |\d+\. |\|)", re.MULTILINE)
LOADED = {"script": "src", "img": "src", "link": "href", "source": "srcset"}


def find_pages(root: Path) -> set[Path]:
    """README.md, everything in docs, and the files that these link to, directly or through other pages."""
    found: set[Path] = set()
    waiting = [root / "README.md", *(root / "docs").rglob("*.md")]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path.suffix == ".md":
            waiting += [target for target in find_targets(path) if target.is_file()]
    return found


def find_targets(page: Path) -> Iterator[Path]:
    """The files that a page links to."""
    for found in LINK.finditer(FENCE.sub("", page.read_text("utf-8"))):
        yield (page.parent / (found[1] or found[2])).resolve()


def copy_pages(root: Path, into: Path) -> None:
    """Copy all pages and the files that they link to, at the same relative places."""
    shutil.rmtree(into, ignore_errors=True)
    for path in sorted(find_pages(root)):
        copy = into / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            copy.write_text(indent_lists(path.read_text("utf-8")), "utf-8")
        else:
            shutil.copyfile(path, copy)


def indent_lists(text: str) -> str:
    """Indent the contents of numbered items by four characters, as Zensical expects, instead of three."""
    lines = []
    inside = False
    for line in text.splitlines():
        if LIST_ITEM.match(line):
            inside = True
        elif line and not line.startswith(INDENTED):
            inside = False
        lines.append(f" {line}" if inside and line.startswith(INDENTED) else line)
    return "\n".join(lines) + "\n"


def copy_hidden_files(pages: Path, site: Path) -> None:
    """Copy linked files whose names begin with a dot; Zensical leaves them out."""
    for path in pages.rglob(".*"):
        if path.is_file():
            shutil.copyfile(path, site / path.relative_to(pages))


class PageReader(HTMLParser):
    """The ids and addresses of one page, and paragraphs that still hold Markdown."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.addresses: set[str] = set()
        self.loaded: set[str] = set()
        self.unrendered: list[str] = []
        self.paragraph: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.ids.update(value for name, value in values.items() if name in ("id", "name"))
        self.addresses.update(value for name, value in values.items() if name in ("href", "src", "srcset"))
        if LOADED.get(tag) in values and values.get("rel") != "canonical":
            self.loaded.add(values[LOADED[tag]])
        if tag == "p":
            self.paragraph = []

    def handle_endtag(self, tag: str) -> None:
        if tag == "p" and self.paragraph is not None:
            text = "".join(self.paragraph)
            if UNRENDERED.search(text):
                self.unrendered.append(text)
            self.paragraph = None

    def handle_data(self, data: str) -> None:
        if self.paragraph is not None:
            self.paragraph.append(data)


def read_pages(site: Path) -> dict[Path, PageReader]:
    """The pages of a site by their files."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = PageReader()
        pages[path].feed(path.read_text("utf-8"))
    return pages


def find_problems(site: Path) -> Iterator[str]:
    """One line for everything that is wrong with a built site."""
    pages = read_pages(site)
    if not pages:
        yield "there are no pages"
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in sorted(page.addresses):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{name}: {address} leads nowhere"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                yield f"{name}: {address} has no such anchor"
        yield from (f"{name}: loads {address}" for address in sorted(page.loaded) if urlsplit(address).netloc)
        yield from (f"{name}: Markdown that was not rendered: {text[:80]!r}" for text in page.unrendered)


def build(root: Path) -> int:
    """Build the site of the project in ``root`` and return the exit code."""
    copy_pages(root, root / "build/pages")
    shutil.rmtree(root / "build/site", ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", "mkdocs.yml"]
    ended = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    output = re.sub(r"\x1b\[[\d;]*m", "", ended.stdout).partition("Traceback ")[0]
    print(output.strip())
    if ended.returncode or "warning" in output.lower():
        return 1
    copy_hidden_files(root / "build/pages", root / "build/site")
    problems = list(find_problems(root / "build/site"))
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(list((root / 'build/site').rglob('*.html')))} pages in build/site, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]).resolve() if sys.argv[1:] else ROOT))
