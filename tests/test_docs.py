"""The pages: their code runs, their links lead somewhere, their tables are those of the results."""

import contextlib
import importlib.util
import io
import re
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parent.parent
WITH_CODE = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if page.parent.name in ("docs", "background", "how_to")
    # test_scanpy.py runs one of these, one takes long, and one needs a cluster
    and page.stem not in ("scanpy", "near_isometry", "scale")
    and re.search("^```python$", page.read_text(encoding="utf-8"), re.M)
]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")  # of scanpy's old files
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(block, names)


def test_the_readme_shows_what_its_code_prints():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code, shown = re.search(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", text, re.M | re.S
    ).groups()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    assert printed.getvalue() == shown


def test_addresses_in_the_readme_are_whole_and_lead_to_files():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    start = "https://raw.githubusercontent.com/heatsketch/heatsketch/main/"
    pictures = re.findall(r"^!\[[^]]*\]\(([^)]*)\)", text, re.M)
    assert pictures
    for address in pictures:
        assert (ROOT / address.removeprefix(start)).is_file(), address
    pages = re.findall(r"https://heatsketch.github.io/heatsketch/([^)]*)\.html\)", text)
    assert pages
    for page in pages:
        assert (ROOT / "docs" / f"{page}.md").is_file(), page
    assert not re.search(r"\]\((?!https://)", text)


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figures_of_benchmarks_are_those_of_the_files(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    page = module_of(ROOT / "benchmarks" / "page.py")
    page_text = (ROOT / "docs" / "developer" / "benchmarks.md").read_text(encoding="utf-8")
    assert page_text == "\n".join(page.sections())
    usefulness = module_of(ROOT / "benchmarks" / "usefulness.py")
    results = usefulness.results_so_far()
    assert usefulness.PAGE.read_text("utf-8") == "\n".join(usefulness.page(results)) + "\n"
    for path in usefulness.SHORT_PAGES:
        text = path.read_text(encoding="utf-8")
        assert usefulness.MARKS[0] in text
        assert usefulness.with_short_table(text, results) == text


def test_forecasts_are_those_of_the_calibration(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    monkeypatch.setattr(sys, "argv", ["cluster_cost.py"])
    page = module_of(ROOT / "benchmarks" / "cluster_cost.py")
    text = page.PAGE.read_text(encoding="utf-8")
    again = tmp_path / "scale.md"
    again.write_text(text.replace("GiB", "bytes"), encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", again)
    page.main()
    assert again.read_text(encoding="utf-8") == text


def test_figures_of_the_uses_are_those_of_the_files(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    page = module_of(ROOT / "benchmarks" / "uses_page.py")
    for part, name in page.PARTS.items():
        text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        assert f"<!-- {part.__name__} -->\n" in text
        assert page.with_part(part, text) == text


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
    assert bool(list(module_of(ROOT / "docs" / "check.py").dead_links(tmp_path))) == is_dead
