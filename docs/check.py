"""Look through the built pages: every link leads somewhere, and the search knows the questions.

::

    python docs/check.py docs/_build/html
"""

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

QUESTIONS = [
    "How do I choose k?",
    "How do I choose epsilon?",
    "How do I choose the power?",
    "How large can N be, and what will it cost?",
    "What does the interval mean?",
    "How do I compare two runs?",
    "How do I extend to new points?",
    "Why is k = 2 a poor picture?",
]


class Page(HTMLParser):
    """The places that a page has, and those that it leads to."""

    def __init__(self, path):
        super().__init__()
        self.places, self.links = set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Take down a tag."""
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def dead_links(folder):
    files = (file for file in sorted(folder.rglob("*.html")) if "_static" not in file.parts)
    pages = {path.resolve(): Page(path) for path in files}  # the theme's templates are no pages
    for path, page in pages.items():
        for link in sorted(page.links):
            scheme, host, target, _, place = urlsplit(link)
            if scheme or host:
                continue
            file = (path.parent / unquote(target)).resolve() if target else path
            place = unquote(place)
            known = place in pages[file].places if place and file in pages else file.exists()
            if not known:
                yield f"{path.relative_to(folder.resolve())}: {link}"


def unanswered(folder):
    text = (folder / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    titles = {title.lower() for title in index["alltitles"]}
    return [question for question in QUESTIONS if question.lower() not in titles]


def main(folder):
    problems = [f"dead link: {link}" for link in dead_links(folder)]
    problems += [f"not in the search: {question}" for question in unanswered(folder)]
    print("\n".join(problems) or "every link leads somewhere, and every question has its heading")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
