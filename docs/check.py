"""Look for dead links in the built pages.

::

    python docs/check.py docs/_build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The ids that a page has, and the links in it."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Take down a tag."""
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def dead_links(folder):
    files = (file for file in sorted(folder.rglob("*.html")) if "_static" not in file.parts)
    pages = {path.resolve(): Page(path) for path in files}  # the theme's templates are no pages
    for path, page in pages.items():
        for link in sorted(page.links):
            scheme, host, target, _, part = urlsplit(link)
            if scheme or host:
                continue
            file = (path.parent / unquote(target)).resolve() if target else path
            part = unquote(part)
            known = part in pages[file].ids if part and file in pages else file.exists()
            if not known:
                yield f"{path.relative_to(folder.resolve())}: {link}"


def main(folder):
    problems = list(dead_links(folder))
    print("\n".join(problems) or "no dead links")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
