"""Write tables and figures of the guides and the background pages from results of benchmarks.

    python benchmarks/uses_page.py

Each stands between two marks of a page of docs, `<!-- name -->` and `<!-- end -->`.
"""

import math
import re
from pathlib import Path

from page import table
from timing import read

PAGES = Path(__file__).parent.parent / "docs"
FORMULA = "dpt's formula in full"
SIZES = {"cells", "genes"}


def search():
    rows = []
    for name, methods in data_of("search").items():
        for method, found in methods.items():
            numbers = {key: f"{found[key]:.3f}" for key in ("mAP", "P@1", "P@10")}
            rows.append({"data": name, "search by": method, **numbers})
    return table(rows)


def cluster():
    rows = []
    for name, methods in data_of("cluster_quality").items():
        cells = {
            method: f"{found['mean']:.3f} ± {found['standard deviation']:.3f}"
            for method, found in methods.items()
        }
        names = ("HeatClustering", "SpectralClustering", "k-means", "Leiden")
        rows.append({"data": name, **{method: cells.get(method) for method in names}})
    return table(rows)


def smooth():
    rows = []
    for name, found in data_of("smooth").items():
        ours = found["ours"]
        best = max(ours["score by time"], key=ours["score by time"].get)
        chosen = f"`smooth`, chosen time {ours['chosen time']}"
        rows += [
            row_of(name, chosen, ours["score at the chosen time"]),
            row_of(name, f"`smooth`, best time {best}", ours["best score"]),
        ]
        for magic in found.get("magic-impute", []):
            setting = f"magic-impute, {magic['scale']}, t={magic['t']}, {magic.get('solver', '')}"
            rows.append(row_of(name, setting.strip(", "), magic["score"]))
    return table(rows)


def row_of(name, method, score):
    return {"data": name, "method": method, "correlation": f"{score:.3f}"}


def data_of(name):
    return {key: found for key, found in read(name).items() if key not in SIZES}


def search_million():
    found = read("search_million")
    milliseconds = found["milliseconds a query, one thread"]
    recall = 100 * found["recall of 11 neighbours"]
    return (
        "A million vectors in an HNSW index of faiss: a query takes "
        f"{milliseconds:.2g} ms in one thread, and finds {recall:.2f} %\n"
        "of the eleven nearest (`benchmarks/search.py --million`).\n"
    )


def cluster_million():
    found = read("cluster_million")
    fit, clusters = found["seconds"]["fit"], found["seconds"]["clusters"]
    return (
        f"A million points in {found['clusters']} clusters took {fit + clusters:.0f} s on two "
        f"cores, {fit:.0f} of them for the fit\n(`benchmarks/cluster_quality.py --million`).\n"
    )


def smooth_million():
    found = read("smooth_million")
    return (
        f"A million cells with {found['genes']:,} genes "
        f"({found['stored counts'] / 1e6:.0f} million counts above zero) took "
        f"{sum(found['seconds'].values()):.0f} s on two\ncores and "
        f"{found['GiB at most, mapped files included']:.0f} GiB, the mapped output included "
        "(`benchmarks/smooth.py --million`).\n"
    )


def compare_size():
    found = read("compare")["size"]["2000000 x 32"]
    return (
        f"Two million rows of 32 features with 199 permutations took "
        f"{found['seconds beyond it']:.0f} s and {found['GiB beyond it']:.0f} GiB more than the "
        "search for\nneighbours, on two cores (`benchmarks/compare.py --size 2000000`).\n"
    )


def labels_scale():
    ((points, found),) = read("labels")["scale"].items()
    return (
        f"{int(points):,} points of 15 features, {found['labels']:,} of them labelled, took "
        f"{found['fit, s']:.0f} s and {found['peak of the process, GiB']:.1f} GiB with the search "
        "for\nneighbours, on two cores (`benchmarks/labels.py --scale`).\n"
    )


def accuracy():
    return (
        "Accuracy of rows without a label, mean over 20 samples of labels, with its standard error."
        f"\nLabelSpreading has the best of three values of `alpha`.\n\n{best_of_tools('accuracy')}"
    )


def coverage():
    return (
        "Share of sets that hold the true class, for `coverage=0.9` and 100 random labels, mean\n"
        f"over 20 samples.\n\n{by_row('coverage')}"
    )


def rare():
    return by_row("rare")


def suspects():
    return (
        "Average precision of finding labels when 10 % are wrong (by chance: 0.1), mean over\n"
        "5 samples. cleanlab has the best of four scores, from probabilities of nearest "
        f"neighbours.\n\n{best_of_tools('suspects')}"
    )


def fates():
    return (
        "Three branches in 10 features. The direct solver is a sparse factorisation.\n\n"
        f"{by_row('fates')}"
    )


def by_row(section):
    return table(
        [
            {"": name} | {key: value for key, value in found.items() if key != "commit"}
            for name, found in read("labels")[section].items()
        ]
    )


def best_of_tools(section):
    """Show mean and standard error of each tool, at the best of its settings."""
    rows = []
    for name, settings in read("labels")[section].items():
        best = {}
        for setting, result in settings.items():
            mean, error, *_ = result.values()
            tool = setting.split(",")[0]
            best[tool] = max(best.get(tool, (0, 0)), (mean, error))
        rows.append({"": name, **{tool: f"{m:.3f} ± {e:.3f}" for tool, (m, e) in best.items()}})
    return table(rows)


def cellrank():
    both = data_of("fates")
    lowest = min(found["correlation"] for found in both.values())
    correlation = math.floor(1000 * lowest) / 1000
    sums = [found["largest error of a row's sum"] for found in both.values()]
    ours, theirs = (
        f"{max(one[name] for one in sums):.0e}".replace("e-0", "e-")
        for name in ("fate", "CellRank")
    )
    large = both["three branches, 20,000 points"]
    return (
        "CellRank computes the same probabilities. From the graph of scanpy and the same terminal\n"
        f"cells, its result and ours correlate by {correlation:.3f} or more on two data sets. Its "
        f"rows sum\nto one within {theirs}, ours within {ours}, and 20,000 points took it "
        f"{large['seconds']['CellRank']:.1f} s, and us {large['seconds']['fate']:.1f} s\n"
        f"(CellRank {large['CellRank']}, `benchmarks/fates.py`).\n"
    )


def report_frame():
    found = read("report")
    return (
        f"While the view moves, a frame of {found['points']:,} points takes "
        f"{1000 * found['seconds of a frame']:.0f} ms on one core without a\ngraphics card "
        "(`benchmarks/report.py`).\n"
    )


def pseudotime():
    return pseudotime_table("each run", "all runs", "stages of embryos")


def pseudotime_blood():
    return pseudotime_table("kinds of blood")


def pseudotime_table(*names):
    """Show the lowest and the highest of the seeds, and dpt in bold where it is above both."""
    rows = []
    for name in names:
        for found in read("pseudotime"):
            if found["data"] != name:
                continue
            ours = [value for key, value in found.items() if key.startswith("heat_pseudotime")]
            dpt = f"{found['dpt']:.3f}"
            rows.append(
                {
                    "": name,
                    "neighbours": found["neighbours"],
                    "`heat_pseudotime`": f"{min(ours):.3f} to {max(ours):.3f}",
                    "`dpt`": f"**{dpt}**" if found["dpt"] > max(ours) else dpt,
                    FORMULA: f"{found[FORMULA]:.3f}",
                }
            )
    return table(rows)


def selection():
    found = read("selection")
    rows = [row for row in found["coverage"] if row["random matrix"] == "gaussian"]
    widths = {(row["points"], row["k"]): row for row in found["widths"]}

    def between(name):
        values = (f"{of(row[name] for row in rows):.2f}".removeprefix("0") for of in (min, max))
        return " to ".join(dict.fromkeys(values))

    def width(name):
        return ", ".join(f"{widths[500, k][name]:.2f}" for k in (16, 32, 64))

    titles = (
        "interval",
        f"coverage, over {len(rows)} settings",
        "width at $k$ = 16, 32, 64, 500 points",
        "recall of the true neighbours",
    )
    recall, at_once = between("recall"), between("at once") + ", of all 15 at once"
    halves = "choice by one half of the components, distance by the other"
    shown = [
        ("of a given pair", between("plain"), "1", recall),
        ("of `diffusion_neighbors`", between("allowed for"), width("allowed for"), recall),
        ("of the same, `simultaneous=True`", at_once, width("at once"), recall),
        (halves, between("halves"), width("halves"), between("recall of halves")),
    ]
    lost = [row["recall"] - row["recall of halves"] for row in rows]
    less, most = (f"{of(lost):.2f}".removeprefix("0") for of in (min, max))
    many, more = (f"{widths[n, 64]['allowed for']:.2f}" for n in (10_000, 1_000_000))
    return (
        f"{table([dict(zip(titles, row, strict=True)) for row in shown])}\n"
        f"Two halves would lose {less} to {most} of the recall, so the choice uses all components. "
        "The price is that\nthe width grows slowly with the number of points: to "
        f"{many} for 10,000 points and {more} for a million, at $k$ = 64.\n"
    )


def self_loops():
    found = read("constants")["self_loops"]
    row = {f"{float(weight):g}": digits(value) for weight, value in found["accuracy"].items()}
    row = {"none" if weight == "0" else weight: value for weight, value in row.items()}
    return (
        f"On a degree-corrected block model ({found['nodes']} nodes, 64 components, $p_0 = "
        f"{found['first power']}$; logistic regression, 10 % of\nthe labels known, mean over three "
        f"splits) the accuracy is\n\n"
        f"{table([{'weight of the self-loop / strongest link': 'accuracy', **row}])}"
    )


def first_power_in_cubes():
    rows = []
    found = read("constants")["first_power_in_cubes"]
    for dimension in dict.fromkeys(one["dimension"] for one in found):
        mine = [one for one in found if one["dimension"] == dimension]
        powers = ", ".join(str(one["first power"]) for one in mine)
        for first, key in (("1", "from 1"), (f"$p_0$ = {powers}", "from the first power")):
            row = {"dimension": dimension, "first power": first}
            rows.append(row | {f"$N$ = {one['points']:,}": digits(one[key]) for one in mine})
    return table(rows)


def first_power_of_a_graph():
    found = read("constants")["first_power_of_a_graph"]
    rows = [
        {"first power": f"accuracy, {name}"} | {p: f"{value:.2f}" for p, value in row.items()}
        for name, row in found["rows"].items()
    ]
    return (
        f"Degree-corrected block model, {found['nodes']} nodes, 64 components, 10 % of the labels "
        "known,\nmean over three splits; the rule finds "
        f"$p_0 = {found['first power']}$, the first condition alone {found['resolved']}:\n\n"
        f"{table(rows)}"
    )


def first_power_of_images():
    return table(
        [
            {"data": name} | {p: " / ".join(map(digits, pair)) for p, pair in by_power.items()}
            for name, by_power in read("constants")["first_power_of_images"].items()
        ]
    )


def horizons():
    found = read("constants")["horizons"]
    titles = {name: "$\\rho$" if name in ("spiral", "Swiss roll") else "mAP" for name in found}
    return table(
        [
            {"T": f"{int(horizon):,}" if horizon.isdigit() else horizon}
            | {f"{name}, {titles[name]}": digits(found[name][horizon]) for name in found}
            for horizon in next(iter(found.values()))
        ]
    )


def weightings():
    measures = {
        "outlier": "200 points, correlation with and without an outlier",
        "two groups": "two distant groups, recall of ten neighbours",
        **dict.fromkeys(("spiral", "Swiss roll", "three branches"), "$\\rho$"),
    }
    titles = {"undivided": "symmetric", "divided": "random walk"}
    found = read("constants")["weightings"]
    return table(
        [
            {"data": name, "measure": measures.get(name, "mAP")}
            | {title: digits(row[kind]) for kind, title in titles.items()}
            for name, row in found.items()
        ]
    )


def digits(value):
    return f"{value:.3f}"


# The page of each part that is written.
PARTS = {
    search: "how_to/search",
    search_million: "how_to/search",
    cluster: "how_to/cluster",
    cluster_million: "how_to/cluster",
    smooth: "how_to/smooth",
    smooth_million: "how_to/smooth",
    compare_size: "how_to/compare",
    accuracy: "how_to/labels",
    coverage: "how_to/labels",
    rare: "how_to/labels",
    suspects: "how_to/labels",
    labels_scale: "how_to/labels",
    fates: "how_to/fates",
    cellrank: "how_to/fates",
    report_frame: "how_to/report",
    pseudotime: "how_to/scanpy",
    pseudotime_blood: "how_to/scanpy",
    selection: "background/distances",
    self_loops: "background/method",
    first_power_in_cubes: "background/method",
    first_power_of_a_graph: "background/method",
    first_power_of_images: "background/method",
    horizons: "background/method",
    weightings: "background/distances",
}


def with_part(part, text):
    """Return a page with a part of it written."""
    marks = rf"(<!-- {part.__name__} -->\n).*?(\n<!-- end -->)"
    return re.sub(marks, lambda mark: f"{mark[1]}\n{part()}{mark[2]}", text, flags=re.S)


def main():
    for part, name in PARTS.items():
        path = PAGES / f"{name}.md"
        path.write_text(with_part(part, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
