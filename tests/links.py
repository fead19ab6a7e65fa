"""Dead links in the project's Markdown files and in the built book. Needs nothing but Python; exit code 1 if a link is dead.

    python3 tests/links.py                       # Markdown: files, folders and headings that links lead to
    python3 tests/links.py --html target/book    # the built book as well

Addresses on the network are not tried. Pages of the book may lead to pages of the book only, since nothing else is beside them when they are
read, and every page must be in SUMMARY.md.
"""
import argparse
import re
import sys
import unicodedata
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs" / "book" / "src"
SKIPPED = {"target", "runs", "node_modules"}
FENCED = re.compile(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)


def outside(target):
    """Whether a link leads out of the project: an address with a scheme, or one that begins at a server's root."""
    return re.match(r"[a-z][a-z0-9+.-]*:|//", target) is not None


def anchor(heading):
    """The name that repository hosts and mdBook give to a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    kept = [c for c in heading.lower() if c in " -_" or unicodedata.category(c)[0] in "LN"]
    return "".join(kept).replace(" ", "-")


@cache
def anchors(path):
    found = set()
    for heading in HEADING.findall(FENCED.sub("", path.read_text(encoding="utf-8"))):
        name, number = anchor(heading), 0
        while name in found:
            number += 1
            name = f"{anchor(heading)}-{number}"
        found.add(name)
    return found


def links(path):
    """Every target of a Markdown file with its line."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])  # noqa: E731: lines keep their numbers
    text = CODE.sub(blank, FENCED.sub(blank, path.read_text(encoding="utf-8")))
    for match in LINK.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, unquote(match[1])


def markdown_files():
    for path in sorted(ROOT.rglob("*.md")):
        parts = path.relative_to(ROOT).parts
        if not any(part in SKIPPED or part.startswith(".") for part in parts):
            yield path


def dead_in_markdown(path):
    for line, target in links(path):
        if outside(target):
            continue
        name, _, place = target.partition("#")
        aim = (path.parent / name).resolve() if name else path
        where = f"{path.relative_to(ROOT)}:{line}: {target}"
        if not aim.exists():
            yield f"{where}: there is no such file"
        elif BOOK in path.parents and BOOK not in aim.parents:
            yield f"{where}: leads out of the book"
        elif BOOK in path.parents and aim.is_dir():
            yield f"{where}: a folder is no page"
        elif place and aim.suffix == ".md" and place not in anchors(aim):
            yield f"{where}: there is no such heading"


def pages_without_entry():
    entries = {(BOOK / target.partition("#")[0]).resolve() for _, target in links(BOOK / "SUMMARY.md")}
    for path in sorted(BOOK.rglob("*.md")):
        if path.name != "SUMMARY.md" and path.resolve() not in entries:
            yield f"{path.relative_to(ROOT)}: not in SUMMARY.md"


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.add(attrs["id"])
        for name in ("href", "src"):
            if attrs.get(name) and tag != "base":
                self.targets.append((self.getpos()[0], unquote(attrs[name])))


def dead_in_html(folder):
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    if not pages:
        yield f"{folder}: holds no page; build the book first: mdbook build docs/book"
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # Shown by a server for any address, so its links begin at the root.
        for line, target in page.targets:
            if outside(target):
                continue
            name, _, place = target.partition("#")
            aim = (path.parent / name).resolve() if name else path
            if not aim.exists():
                yield f"{path.relative_to(folder.resolve())}:{line}: {target}: there is no such file"
            elif place and aim in pages and place not in pages[aim].ids:
                yield f"{path.relative_to(folder.resolve())}:{line}: {target}: there is no such place"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--html", type=Path, metavar="FOLDER", help="built book to look through as well")
    options = parser.parse_args()
    files = list(markdown_files())
    dead = [finding for path in files for finding in dead_in_markdown(path)]
    dead += pages_without_entry()
    if options.html:
        dead += dead_in_html(options.html)
    for finding in dead:
        print(finding, file=sys.stderr)
    print(f"{len(files)} Markdown files, {len(dead)} dead links")
    sys.exit(1 if dead else 0)


if __name__ == "__main__":
    main()
