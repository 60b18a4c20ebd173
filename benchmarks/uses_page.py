"""Write the tables and figures of the how-to guides from the results of benchmarks.

    python benchmarks/uses_page.py

Each stands between two marks of a page of docs/how_to, `<!-- name -->` and `<!-- end -->`.
"""

import math
import re
from pathlib import Path

from page import table
from timing import read

PAGES = Path(__file__).parent.parent / "docs" / "how_to"
FORMULA = "dpt's formula in full"
ABOUT = {"commit", "python", "versions", "cells", "genes"}


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
    return {key: found for key, found in read(name).items() if key not in ABOUT}


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


def suspects():
    return (
        "Average precision of finding labels when 10 % are wrong (by chance: 0.1), mean over\n"
        f"5 samples. cleanlab has the best of four scores.\n\n{best_of_tools('suspects')}"
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


# The page of each part that is written.
PARTS = {
    search: "search",
    search_million: "search",
    cluster: "cluster",
    cluster_million: "cluster",
    smooth: "smooth",
    smooth_million: "smooth",
    compare_size: "compare",
    accuracy: "labels",
    coverage: "labels",
    suspects: "labels",
    labels_scale: "labels",
    fates: "fates",
    cellrank: "fates",
    report_frame: "report",
    pseudotime: "scanpy",
    pseudotime_blood: "scanpy",
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
