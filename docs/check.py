"""Look through sources and built pages: links, headings that are searched for, words, numbers.

::

    python docs/check.py docs/_build/html
"""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).parent
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
# Metaphors and words of our own, and what the field says instead. Developers' pages are not read
# for words, and only the reproduction has the paper's abbreviations.
WORDS = {
    r"foretold|foretells?|announced": "predicted, estimated",
    r"by lot\b|\blots\b": "randomly sampled",
    r"lonely": "isolated",
    r"\bstrange\b": "invalid",
    r"\bpieces\b": "connected components, chunks",
    r"bit for bit|every bit of": "bit-identical",
    r"columns of a sketch": "components",
    r"\bmended\b|made anew": "fixed, recomputed",
    r"whole numbers?\b": "integer",
    r"\brefused?s?\b": "raise",
    r"carried along|\bheard\b|listens? to": "passthrough, callback",
    r"random signs|\bsigns are\b|those for signs": "Rademacher",
    r"random block": "random matrix",
    r"shadows?\b": "projection",
    r"\b(GPS|GPB|DMS|DMB|GPSBS|GPSBB|NISW?)\b": "the name of the method",
}
RAW_FLOAT = re.compile(r"(?<![\w./-])\d*\.0*[1-9]\d{3,}(?![\w%]|\.\d)")


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


def unanswered(folder):
    text = (folder / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    titles = {title.lower() for title in index["alltitles"]}
    return [question for question in QUESTIONS if question.lower() not in titles]


def pages(docs=DOCS):
    """Yield the pages that people write or that scripts write for them, and README."""
    yield docs.parent / "README.md"
    for path in sorted(docs.rglob("*.md")):
        if "_build" not in path.parts and path.parent.name != "benchmarks":
            yield path


def prose(text):
    """Return a page without code, formulas, addresses and comments, with as many lines."""
    hidden = r"^(`{3,}|~{3,}).*?^\1|`[^`\n]*`|\$\$.*?\$\$|\]\([^)]*\)|https?://\S+|arXiv:[\d.]+|<!--.*?-->"
    return re.sub(hidden, lambda found: "\n" * found[0].count("\n"), text, flags=re.M | re.S)


def banned_words(text):
    for number, line in enumerate(prose(text).splitlines(), 1):
        for word, better in WORDS.items():
            if found := re.search(word, line, re.IGNORECASE):
                yield f"{number}: {found[0]!r}; write: {better}"


def raw_floats(text):
    for number, line in enumerate(prose(text).splitlines(), 1):
        yield from (
            f"{number}: {found[0]} has too many digits" for found in RAW_FLOAT.finditer(line)
        )


def main(folder):
    problems = [f"dead link: {link}" for link in dead_links(folder)]
    problems += [f"not in the search: {question}" for question in unanswered(folder)]
    for path in pages():
        text = path.read_text(encoding="utf-8")
        faults = [*raw_floats(text)]
        faults += [] if path.parent.name == "developer" else [*banned_words(text)]
        problems += [f"{path.relative_to(DOCS.parent)}:{fault}" for fault in faults]
    print("\n".join(problems) or "links, headings, words and numbers are as they should be")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
