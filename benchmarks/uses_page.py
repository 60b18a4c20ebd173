"""Write the tables of the how-to guides for search, smoothing and clusters from their results.

    python benchmarks/uses_page.py

A table stands between two marks, `<!-- name -->` and `<!-- end -->`, of docs/how_to/name.md.
"""

import re
from pathlib import Path

from page import table
from timing import RESULTS, read

PAGES = Path(__file__).parent.parent / "docs" / "how_to"
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


SOURCES = {"search": "search", "cluster": "cluster_quality", "smooth": "smooth"}


def with_table(name, text):
    """Return a page with its table, if there are results."""
    if not (RESULTS / f"{SOURCES[name]}.json").exists():
        return text
    found = {"search": search, "cluster": cluster, "smooth": smooth}[name]()
    marks = rf"(<!-- {name} -->\n).*?(\n<!-- end -->)"
    return re.sub(marks, lambda mark: f"{mark[1]}\n{found}{mark[2]}", text, flags=re.S)


def main():
    for name in SOURCES:
        path = PAGES / f"{name}.md"
        path.write_text(with_table(name, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
