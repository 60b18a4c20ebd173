"""The pages: their code runs, and their checker finds what is wrong."""

import contextlib
import importlib.util
import io
import json
import re
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parent.parent
WITH_CODE = [
    "index",
    "background/distances",
    "background/method",
    "background/questions",
    "how_to/cluster",
    "how_to/compare",
    "how_to/fates",
    "how_to/graphs",
    "how_to/labels",
    "how_to/new_points",
    "how_to/own_neighbors",
    "how_to/search",
    "how_to/smooth",
]
PAGES = [f"docs/{name}.md" for name in WITH_CODE]


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


def test_the_readme_shows_what_its_code_prints():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code, shown = re.search(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", text, re.M | re.S
    ).groups()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    assert printed.getvalue() == shown


def test_gains_in_the_readme_are_those_that_were_measured():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    results = json.loads((ROOT / "docs/benchmarks/usefulness.json").read_text())["results"]
    raw, ours = (
        f"{results['digits'][method][size]['mAP']['mean']:.2f}"[1:]
        for method, size in (("raw Euclidean", ""), ("HeatSketch", "64"))
    )
    assert f"from {raw} (pixels) to {ours}." in text
    clusters = json.loads((ROOT / "docs/benchmarks/cluster_quality.json").read_text())
    index = {name: f"{of['mean']:.2f}"[1:] for name, of in clusters["MNIST, 5,000"].items()}
    assert f"is {index['HeatClustering']} (`HeatClustering`)" in text
    assert f"SpectralClustering {index['SpectralClustering']}, and" in text
    assert f"k-means on pixels {index['k-means']}." in text
    power = json.loads((ROOT / "docs/benchmarks/compare.json").read_text())["power"]
    found = power["digits: unseen class, 5 %"]
    assert f"in {100 * found['compare']:.0f} % of runs" in text
    assert f"maximum mean discrepancy in {100 * found['MMD']:.0f} %" in text


def test_accuracies_of_labels_in_the_readme_are_those_measured():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    measured = json.loads((ROOT / "docs/benchmarks/labels.json").read_text())["accuracy"]
    of = {name: row["accuracy"] for name, row in measured["digits, 1 a class"].items()}
    others = max(of[name] for name in of if name.startswith("LabelSpreading"))
    assert f"classifies {100 * of['HeatLabels']:.0f} % of the digits" in text
    assert f"LabelSpreading classifies {100 * others:.0f} %" in text


def test_precision_in_the_readme_is_that_of_the_picture():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    facts = json.loads((ROOT / "docs/pictures/retrieval.json").read_text())
    pixels, ours = (shares[facts["ranks"].index(100)] for shares in facts["precision"].values())
    assert f"{pixels:.0%} show".replace("%", " %") in text
    assert f"pixels and {ours:.0%} by heatsketch".replace("%", " %") in text


def test_addresses_of_pictures_in_the_readme_are_whole_and_lead_to_files():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    start = "https://raw.githubusercontent.com/heatsketch/heatsketch/main/"
    pictures = re.findall(r"^!\[[^]]*\]\(([^)]*)\)", text, re.M)
    assert pictures
    for address in pictures:
        assert (ROOT / address.removeprefix(start)).is_file(), address
    assert not re.search(r"\]\((?!https://)", text)


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
    page_text = (ROOT / "docs" / "developer" / "benchmarks.md").read_text(encoding="utf-8")
    assert page_text == "\n".join(page.sections())
    usefulness = module_of(ROOT / "benchmarks" / "usefulness.py")
    results = usefulness.results_so_far()
    for path in usefulness.SHORT_PAGES:
        text = path.read_text(encoding="utf-8")
        assert usefulness.MARKS[0] in text
        assert usefulness.with_short_table(text, results) == text


def test_figures_of_the_uses_are_those_of_the_files(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    page = module_of(ROOT / "benchmarks" / "uses_page.py")
    for part, name in page.PARTS.items():
        text = (ROOT / "docs" / "how_to" / f"{name}.md").read_text(encoding="utf-8")
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
    assert bool(list(checker().dead_links(tmp_path))) == is_dead


def test_questions_without_a_heading_are_found(tmp_path):
    check = checker()
    titles = ", ".join(f'"{question}": []' for question in check.QUESTIONS[1:])
    (tmp_path / "searchindex.js").write_text(f'Search.setIndex({{"alltitles": {{{titles}}}}})')
    assert check.unanswered(tmp_path) == check.QUESTIONS[:1]


def test_every_question_is_a_heading_of_a_page():
    paths = (ROOT / "docs" / "background").glob("*.md")
    pages = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    for question in checker().QUESTIONS:
        assert re.search(rf"^## {re.escape(question)}$", pages, re.M)


@pytest.mark.parametrize(
    ("text", "n_words", "n_floats"),
    [
        ("An integer of lonely points, 0.949 and 11.82 and 1,797.", 1, 0),
        ("`lonely = 0.94867`", 0, 0),
        ("It took 0.94867 s, a [link](lonely-0.94867.md), arXiv:2403.07929", 0, 1),
        ("```python\nlonely = 0.94867\n```\nlonely: .00012345", 1, 1),
        ("by GPS", 1, 0),
    ],
)
def test_words_and_raw_floats_are_found_in_prose_only(text, n_words, n_floats):
    check = checker()
    assert len(list(check.banned_words(text))) == n_words
    assert len(list(check.raw_floats(text))) == n_floats


def test_pages_have_neither_banned_words_nor_raw_floats():
    check = checker()
    for path in check.pages():
        text = path.read_text(encoding="utf-8")
        assert not list(check.raw_floats(text)), path
        if path.parent.name != "developer":
            assert not list(check.banned_words(text)), path


def test_the_table_of_mutants_is_that_of_the_file():
    mutants = module_of(ROOT / "tests" / "_support" / "mutants.py")
    text = mutants.PAGE.read_text(encoding="utf-8")
    assert mutants.with_table(text, json.loads(mutants.RESULTS.read_text())) == text


def test_what_the_guide_to_comparing_says_was_measured():
    text = (ROOT / "docs" / "how_to" / "compare.md").read_text("utf-8")
    found = json.loads((ROOT / "docs" / "benchmarks" / "compare.json").read_text("utf-8"))
    assert all(row["same bits as one process"] for row in found["size on Dask"].values())
    new = [row for name, row in found["power"].items() if name.endswith("unseen class, 5 %")]
    for test in ("compare", "MMD"):
        shares = [100 * row[test] for row in new]
        assert f"in {min(shares):.0f} to {max(shares):.0f} %" in " ".join(text.split())


def test_what_the_method_says_of_conjugate_gradients_was_measured():
    text = " ".join((ROOT / "docs" / "background" / "method.md").read_text("utf-8").split())
    found = json.loads((ROOT / "docs" / "benchmarks" / "all_times.json").read_text("utf-8"))["data"]
    for name in ("digits", "MNIST, 5,000", "Swiss roll, 30,000", "blobs"):
        row = found[name]
        assert f"{row['CG: products']} instead of {row['ours: products']}" in text
    deflated = [row["deflated CG: products"] for row in found.values()]
    assert f"they need {min(deflated)} to {max(deflated)}" in text
    residuals = [
        row[f"{which}: residual"] for row in found.values() for which in ("CG", "deflated CG")
    ]
    lowest, highest = (f"{of(residuals):.2g}".lstrip("0") for of in (min, max))
    assert f"varies from {lowest} to {highest}" in text
    assert f"It was {found['digits']['ours: products']} for digits" in text
    assert f"{found['spiral']['ours: products']} for a spiral of 600" in text
