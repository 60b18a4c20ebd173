"""The pages: their code runs, and their checker finds what is wrong."""

import contextlib
import importlib.util
import io
import json
import re
import sys
from math import ceil
from pathlib import Path

import matplotlib as mpl
import pytest

from heatsketch.cli._memory import USUAL

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
    "how_to/report",
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
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
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


def result(name):
    return json.loads((ROOT / "docs" / f"{name}.json").read_text(encoding="utf-8"))


def short(share):
    return f"{share:.2f}".removeprefix("0")


def percent(share):
    return f"{100 * share:.0f} %"


def of_embeddings():
    """Yield pages and what they say by the comparison of embeddings."""
    found = result("benchmarks/usefulness")["results"]

    def mean(data, method, measure):
        size = "64" if method.startswith("HeatSketch") else ""
        return short(found[data][method][size][measure]["mean"])

    raw, ours = (mean("digits", method, "mAP") for method in ("raw Euclidean", "HeatSketch"))
    yield "README.md", f"from {raw} (pixels) to {ours}."
    name = "Fashion-MNIST, 70,000"
    raw, ours = (mean(name, method, "accuracy") for method in ("raw Euclidean", "HeatSketch"))
    assert raw > ours  # so that README may say that pixels are better
    yield "docs/background/choosing.md", f"pixels predict {raw} of them, in 64 components {ours}."
    before, after = (
        mean("MNIST, 5,000", f"HeatSketch{rows}", "mAP") for rows in ("", ", unit rows")
    )
    yield "docs/background/parameters.md", f"rose from {before} to {after}."


def of_uses():
    """Yield pages and what they say by the results of the uses."""
    clusters = result("benchmarks/cluster_quality")
    index = {name: short(of["mean"]) for name, of in clusters["MNIST, 5,000"].items()}
    yield "README.md", f"is {index['HeatClustering']} (`HeatClustering`)"
    yield "README.md", f"SpectralClustering {index['SpectralClustering']}, and"
    yield "README.md", f"k-means on pixels {index['k-means']}."
    umap = result("benchmarks/usefulness")["results"]["MNIST, 5,000"]["UMAP"]["2"]["ARI"]["mean"]
    yield "README.md", f"Leiden ({index['Leiden']}) and k-means after UMAP ({short(umap)})"
    cancer = [
        clusters["breast cancer"][f"{name}Clustering"]["mean"] for name in ("Spectral", "Heat")
    ]
    yield "docs/how_to/cluster.md", f"is better by {cancer[0] - cancer[1]:.2f}."
    labels = result("benchmarks/labels")["accuracy"]["digits, 1 a class"]
    of = {name: row["accuracy"] for name, row in labels.items()}
    others = max(of[name] for name in of if name.startswith("LabelSpreading"))
    yield "README.md", f"classifies {percent(of['HeatLabels'])} of the digits"
    yield "README.md", f"LabelSpreading classifies {percent(others)}"
    yield "README.md", f"GraphLearning classifies {percent(of['GraphLearning, Poisson'])}"
    compare = result("benchmarks/compare")
    new = {name: row for name, row in compare["power"].items() if "unseen class, 5 %" in name}
    yield "README.md", f"in {percent(new['digits: unseen class, 5 %']['compare'])} of runs"
    yield "README.md", f"discrepancy in {percent(new['digits: unseen class, 5 %']['MMD'])}"
    (runs,) = {row["runs"] for row in new.values()}
    ours, theirs = (
        f"{100 * min(shares):.0f} to {percent(max(shares))}"
        for shares in ([row[test] for row in new.values()] for test in ("compare", "MMD"))
    )
    yield "docs/how_to/compare.md", f"in {ours} of {runs} runs"
    yield "docs/how_to/compare.md", f"in {theirs}."
    yield "README.md", f"in {ours}, against {theirs}."
    shifts = [row for name, row in compare["power"].items() if "all rows move" in name]
    ours = [row["compare"] for row in shifts]
    yield "README.md", f"in {100 * min(ours):.0f} to {percent(max(ours))} of runs, and by"
    yield "README.md", f"columns in {percent(min(row['KS, Bonferroni'] for row in shifts))}."
    retrieval = result("pictures/retrieval")
    first = retrieval["ranks"].index(100)
    pixels, ours = (percent(shares[first]) for shares in retrieval["precision"].values())
    for page in ("README.md", "docs/index.md"):
        yield page, f"{pixels} show"
        yield page, f"pixels and {ours} by heatsketch"


def of_the_method():
    """Yield pages and what they say by the results of the method itself."""
    found = result("benchmarks/all_times")["data"]
    page = "docs/background/method.md"
    for name in ("digits", "MNIST, 5,000", "Swiss roll, 30,000", "blobs"):
        row = found[name]
        yield page, f"{row['CG: products']} instead of {row['ours: products']}"
    deflated = [row["deflated CG: products"] for row in found.values()]
    yield page, f"they need {min(deflated)} to {max(deflated)}"
    residuals = [
        row[f"{which}: residual"] for row in found.values() for which in ("CG", "deflated CG")
    ]
    least, most = (f"{of(residuals):.2g}".lstrip("0") for of in (min, max))
    yield page, f"varies from {least} to {most}"
    yield page, f"It was {found['digits']['ours: products']} for digits"
    yield page, f"{found['Swiss roll, 3,000']['ours: products']} for a Swiss roll of 3000"
    yield page, f"{found['spiral']['ours: products']} for a spiral of 600"
    rows = {row["points"]: row for row in result("benchmarks/scaling")}
    many = rows[10_000_000]
    page = "docs/background/questions.md"
    yield page, f"took [{many['seconds']:.0f} s and {many['process GiB']:.1f} GiB]"
    yield page, f"and a million {rows[1_000_000]['seconds']:.0f} s."
    page = "docs/background/distances.md"
    worst = min(row["worst neighbour"] for row in result("benchmarks/selection")["coverage"])
    yield page, f"at worst {short(worst)}, for the first of 15"
    levels = result("benchmarks/drift_level")["settings"]
    alarms = percent(max(row["share of alarms"] for row in levels))
    yield page, f"no more than {alarms} raised an alarm in any of {len(levels)} settings"
    assert {row["null runs"] for row in levels} == {400}
    single = sum(row["share of single rows found"] for row in levels) / len(levels)
    yield page, f"it is found in {100 * single:.0f} % of runs on average"
    yield page, f"{result('pictures/drift')['relabellings of the mice']} random divisions"
    yield "docs/how_to/command_line.md", f"is some {USUAL >> 20} MiB of that"


def of_damaged_files():
    """Yield what the page of reliability says by the results of fuzzing."""
    found, page = result("benchmarks/fuzzing"), "docs/developer/reliability.md"
    guided = sum(row["cases"] for row in found["guided"].values())
    yield page, f"{found['cases'] / 1e6:.2f} million files in {found['seconds']:.0f} s"
    yield page, f"{guided / 1e6:.1f} million of them guided"
    rows = found["damaged"].values()
    yield page, f"none took more than {ceil(max(row['slowest'] for row in rows))} s."
    least = ceil(max(row["bytes"] for row in rows if row["format"] != ".parquet") / 2**20)
    yield page, f"None took more than {least} MiB but Parquet"
    most = max(row["bytes"] for row in rows) / 2**30
    yield page, f"Arrow allocated up to {most:.1f} GiB"


@pytest.mark.parametrize(
    ("page", "words"), [*of_embeddings(), *of_uses(), *of_the_method(), *of_damaged_files()]
)
def test_what_a_page_says_was_measured(page, words):
    assert words in " ".join((ROOT / page).read_text(encoding="utf-8").split())


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


def checker():
    return module_of(ROOT / "docs" / "check.py")


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
    monkeypatch.setattr(sys, "argv", ["scale_page.py"])
    page = module_of(ROOT / "benchmarks" / "scale_page.py")
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


def test_the_guide_to_comparing_may_say_that_a_cluster_gives_the_same_bits():
    rows = result("benchmarks/compare")["size on Dask"].values()
    assert rows and all(row["same bits as one process"] for row in rows)
