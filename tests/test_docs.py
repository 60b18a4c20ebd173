"""The pages: their code runs, and their checker finds what is wrong."""

import importlib.util
import re
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "docs/index.md", "docs/questions.md", "docs/method.md", "docs/distances.md"]


def blocks(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


@pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::UserWarning"
)  # scanpy's, of old files
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page):
    mpl.use("Agg")
    names = {}
    assert blocks(page)
    for block in blocks(page):
        exec(block, names)


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def checker():
    return module_of(ROOT / "docs" / "check.py")


def test_figures_of_benchmarks_are_those_of_the_files(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    page = module_of(ROOT / "benchmarks" / "page.py")
    page_text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page_text == "\n".join(page.sections())
    usefulness = module_of(ROOT / "benchmarks" / "usefulness.py")
    results = usefulness.results_so_far()
    for path in usefulness.SHORT_PAGES:
        text = path.read_text(encoding="utf-8")
        assert usefulness.MARKS[0] in text
        assert usefulness.with_short_table(text, results) == text


@pytest.mark.parametrize(
    ("link", "is_dead"),
    [
        ("other.html", False),
        ("other.html#here", False),
        ("#top", False),
        ("https://example.org/nowhere", False),
        ("gone.html", True),
        ("other.html#gone", True),
        ("#gone", True),
    ],
)
def test_dead_links_are_found(tmp_path, link, is_dead):
    (tmp_path / "page.html").write_text(f'<p id="top"><a href="{link}">a</a></p>')
    (tmp_path / "other.html").write_text('<p id="here"></p>')
    assert bool(list(checker().dead_links(tmp_path))) == is_dead


def test_questions_without_a_heading_are_found(tmp_path):
    check = checker()
    titles = ", ".join(f'"{question}": []' for question in check.QUESTIONS[1:])
    (tmp_path / "searchindex.js").write_text(f'Search.setIndex({{"alltitles": {{{titles}}}}})')
    assert check.unanswered(tmp_path) == check.QUESTIONS[:1]


def test_every_question_is_a_heading_of_a_page():
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    for question in checker().QUESTIONS:
        assert re.search(rf"^## {re.escape(question)}$", pages, re.M)
