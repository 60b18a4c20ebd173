"""Write docs/benchmarks.md, and the table of peers of other pages, from docs/benchmarks."""

import re

from data import DATA
from timing import RESULTS, read

HEAD = """# Benchmarks

This page was written by `benchmarks/page.py` from the files in `docs/benchmarks`, which the other
scripts of `benchmarks/` wrote. `make bench` runs most of them, in hours; `make chaos` runs `chaos`
and `cluster`, `make grid` runs `cluster_grid`, `make repeat` runs `repeats` (see
[](reliability.md)), and `scale_page`, which writes to [](scale.md), is run by hand.
The machine had 2 cores (x86-64 with AVX-512), 24 GiB and no GPU, and was shared: absolute times
drift by a factor of two there. Where a *control* is given, both sides were timed in turn, in one
run, and the control is one side against itself. Where there is none, times are rough: most are of
single runs.
Nothing here says how good an embedding is for a purpose of yours; label accuracy is one purpose.
"""

ROOT = RESULTS.parent.parent
PAGES_WITH_PEERS = ROOT / "README.md", ROOT / "docs" / "choosing.md"
MARKS = "<!-- made by benchmarks/page.py -->", "<!-- until here -->"


def table(rows):
    """Return rows, which are dictionaries with the same keys, as a table."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([row.get(name) for name in names] for row in rows)]
    cells = (("-" if cell is None else str(cell) for cell in line) for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"


def sections():
    yield HEAD
    yield """## From 1e5 to 1e7 points

A manifold of dimension 4 in 16 features with noise, float32, all options
by default (`benchmarks/scaling.py`). Memory is what the fit takes besides `X`, with the libraries
that it loads; the predictions are those of `estimate_memory`.

![Time and memory over the number of points](benchmarks/scaling.png)
"""
    yield table(read("scaling"))
    million = read("million")
    spread = million["distances on a tenth, over those of the exact graph"]
    yield f"""## A million points against a graph alone

On 1e6 points with 32 features the whole of `HeatSketch().fit` took
**{million["default fit / pynndescent graph"]:.2f}** of the time in which pynndescent, warm, finds
its graph of 15 neighbours, and that of `HeatSketch(32, power=8).fit`
{million["fit at power 8 / pynndescent graph"]:.2f}
(control {million["control: pynndescent / pynndescent"]:.2f}). All that
follows our graph took {million["after the graph / graph"]:.2f} of the time of the graph. On every
tenth of these points, where the exact graph is affordable, distances from our graph and the same
random block have a mean of {spread["mean"]:.3f} and a spread of {spread["spread"]:.3f} relative
to those from the exact one; the sketch's own error is 0.125 (`benchmarks/million.py`).
"""
    yield "## Products\n"
    yield """Eight steps of `sketch`, which take out the stationary direction and scale, over eight
bare products of MKL on the same arrays: 1e6 rows of 17 entries in a local order, float32. Both
write to fresh memory, MKL once also to memory used before (`benchmarks/products.py`).
"""
    yield table([{"what": name, "ratio": ratio} for name, ratio in read("products").items()])
    yield """## Power 1024

Chebyshev sums against 1024 plain steps, timed in turn: 1e5 points on a Swiss roll, 32 columns
(`benchmarks/powers.py`).
"""
    yield table([{"dtype": dtype} | row for dtype, row in read("powers").items()])
    yield """## Small things

Our Gaussians, which are the same on every machine, against numpy's, 1e6 times 32 of them in float32
(ours in two threads); and what `import heatsketch` adds (`benchmarks/small.py`).
"""
    yield table([{"what": name, "ratio": ratio} for name, ratio in read("small").items()])
    if (RESULTS / "limits.json").exists():
        yield from limits()
    if (RESULTS / "tiles.json").exists():
        yield from tiles()
    if (RESULTS / "eigenpairs.json").exists():
        yield """## Eigenpairs out of a sketch

`HeatSketch(64).diffusion_map(10)` against scipy's eigsh on the same operator, 1e5 points in
float64, one run of each (`benchmarks/eigenpairs.py`).
"""
        yield table([{"what": name, "figure": x} for name, x in read("eigenpairs").items()])
    if (RESULTS / "cluster.json").exists():
        yield from cluster()
    if (RESULTS / "chaos.json").exists():
        yield from chaos()
    yield from choices()
    yield from real_data()


def limits():
    yield """## Limits of memory

`LocalEngine(memory_limit=...)`: a fit keeps to it, or is refused once `X` has been checked, before
any of the work. Without `n_neighbors` it is all pairs, kept or made anew as the limit allows
(`benchmarks/limits.py`).
"""
    rows = read("limits")
    if "MiB" in rows[0]:  # and not "MiB of the fit", which the script measures now
        yield """The MiB are not of the fit alone: they are the highest memory of the process, from
its start on, less what it held when the fit began. So a refused fit shows the making and the
checking of `X`, and a small one may have used memory that the process had already. The script now
forgets that peak before the fit, and has not been run in full since.
"""
    yield table(rows)


def tiles():
    yield """## All pairs beyond memory

The paper's own kernel, without neighbours: where its matrix is larger than the memory allowed, it
is made anew at every product (`benchmarks/tiles.py`).
"""
    found = read("tiles")
    rows = found.pop("fit") | found
    yield table([{"what": name, "figure": value} for name, value in rows.items()])


CLUSTER_CONTROL = "control: one process / itself"


def cluster():
    found = read("cluster")
    yield """## A cluster

Two workers of 6 GiB and a scheduler, all processes of this machine, on the manifold of the first
table (`benchmarks/cluster.py`). The client of the second table had a limit of 1 GiB. What a step
costs where there is hardly anything to compute is the price of messages.
"""
    names = {"spread": "spread of distances over those of one machine, {} points",
             "overhead": "products over one process with 2 threads, {} points"}  # fmt: skip
    figures = {"spread": "spread", "overhead": "cluster / one process with 2 threads"}
    rows = [
        {"what": names[part].format(f"{int(n):.0e}"), "figure": round(row[figures[part]], 2)}
        for part in names
        for n, row in found.get(part, {}).items()
    ]
    rows += [
        {"what": "control: one process over itself", "figure": round(row[CLUSTER_CONTROL], 2)}
        for row in found.get("overhead", {}).values()
    ]
    messages = found.get("messages", {}).items()
    yield table(rows + [{"what": what, "figure": round(x, 3)} for what, x in messages])
    yield table([whole_row(n, row) for n, row in found["whole"].items()])
    if "cost" in found:
        yield """What the model of `heatsketch plan --workers` foretells from fits of 60 000 and
180 000 points, and what is true:

![Foretold over measured: time, memory, bytes sent](benchmarks/cluster-cost.png)
"""
        yield table([cost_row(name, row) for name, row in found["cost"].items()])


def whole_row(n, row):
    return {
        "points, from zarr": f"{int(n):.0e}",
        "seconds": round(row["seconds"]),
        "client, GiB": round(row["peak of the client, GiB"], 2),
        "workers, GiB": round(max(row["peaks of the workers, GiB"]), 2),
        "to the client, bytes": row["bytes to the client, as far as logged"],
    }


def cost_row(name, row):
    cells = {"points": f"{int(name.split(',')[0]):.0e}", "k": name.split("= ")[1]}
    for what in ("seconds", "bytes of a worker", "bytes sent"):
        cells[what] = f"{row[what]:.3g}"
        cells[f"{what}, foretold / true"] = round(row[f"{what} foretold"] / row[what], 2)
    return cells


HARMS = {
    "kill_one": "a worker is killed",
    "kill_all": "all workers are killed",
    "stop_one": "a worker is stopped for 10 s",
    "fill_memory": "a worker takes more memory than it may, and is ended by its nanny",
}


def chaos():
    yield """## Chaos

The same fit under harm at random moments, held against the embedding of one process, bit for bit
(`benchmarks/chaos.py`, `make chaos`): 16 384 points in four blocks on two workers, 40 products, a
checkpoint after each.
"""
    found = read("chaos")
    yield table(
        [
            {
                "harm": HARMS[harm],
                "runs": len(row["runs"]),
                "harms": row["harms"],
                "bit-identical": row["bit-identical"],
                "tasks": row["tasks of a run"],
                "done again for each harm": f"{row['tasks done again for each harm, share']:.1%}",
            }
            for harm, row in found.items()
            if harm in HARMS
        ]
    )
    if "drivers" in found:
        row = found["drivers"]
        same = "the same bits" if row["bit-identical"] else "other bits"
        yield f"""A driver that was killed {row["deaths"]} times, after each line of its journal
(which says what stage or step is done), and started again each time, ended with {same};
of {row["lines"]} lines, {row["again"]} were written again.
"""


def choices():
    yield "## Choices\n"
    yield """`epsilon="auto"`: mean log L of the paper's experiments, over that with the paper's own
epsilon, and the dimensions that it sees (`benchmarks/epsilon.py`).
"""
    epsilon = read("epsilon")
    yield table(epsilon["distortion"])
    yield table([row for row in epsilon["dimensions"] if row.get("seed", 0) == 0])


def real_data():
    names = [name for name in DATA if (RESULTS / f"peers-{name}.json").exists()]
    if not names:
        return
    yield """## Real data, side by side

Each method in a process of its own with its defaults, 15 neighbours and 32 components where it has
such, after a small run that compiles what it compiles (`benchmarks/peers.py`). Accuracy is that of
the 10 nearest neighbours in the embedding, half of the labels known. The methods pursue different
ends: UMAP and t-SNE make pictures, and their distances are not diffusion distances.
SpectralEmbedding and eigsh solve for eigenvectors, to a tolerance of their own.

**Whole runs** were made once each, in several sessions, not in turn and without a control. They
include the search for neighbours, which is not the same search: scikit-learn's is exact, in the 784
dimensions of Fashion-MNIST, too; ours beyond some ten thousand points is approximate. The search
was not timed apart. Limits of time were not the same either: each is said where it was reached, and
includes the small run and the neighbours that tell the accuracy.

**Embedding stages** alone all had one graph, ours; our own stage is eight products. Each was timed
once, between two runs of ours, and "over ours" is over the mean of these. The control is ours in
the place of another. It is far from 1, so read these ratios as orders of magnitude. What is not in
the table was not timed apart; for the photograph nothing was.
"""
    for name in names:
        yield from peers(name)


EXACT = "scikit-learn's, exact"
SEARCHES = {
    "heatsketch": "our own, approximate when large",
    "scikit-learn SpectralEmbedding, amg": EXACT,
    "scikit-learn SpectralEmbedding, lobpcg": EXACT,
    "diffusion map, scipy eigsh": EXACT,
    "scikit-network RandomProjection": EXACT,
    "UMAP": "its own, approximate when large",
    "UMAP, 2 dimensions": "its own, approximate when large",
    "openTSNE, 2 dimensions": "its own, approximate when large",
}
STAGES = {
    "heatsketch": "heatsketch: A^8 G",
    "diffusion map, scipy eigsh": "scipy eigsh",
    "scikit-learn SpectralEmbedding, amg": "scikit-learn spectral_embedding, amg",
    "scikit-learn SpectralEmbedding, lobpcg": "scikit-learn spectral_embedding, lobpcg",
}
CONTROL = STAGES["heatsketch"]


def peers(name):
    results = read(f"peers-{name}")
    yield f"### {name}\n"
    yield table(
        [
            {
                "whole run": method,
                "neighbours": SEARCHES[method],
                "seconds": row.get("seconds"),
                "peak MiB": row.get("peak MiB"),
                "accuracy": row.get("accuracy"),
                "failed": row.get("failed"),
            }
            for method, row in results["whole"].items()
        ]
    )
    stages = results["embedding stage"].items()
    if stages:
        names = {CONTROL: f"control: {CONTROL}, against itself"}
        yield table([{"embedding stage": names.get(stage, stage)} | row for stage, row in stages])


def side_by_side():
    """Return the table of README: whole runs, and the embedding stage alone where it was timed."""
    digits, fashion = read("peers-digits"), read("peers-fashion")
    lines = [
        "| | neighbours | digits, 1797 | | | Fashion-MNIST, 70,000 | | |",
        "|---|---|---|---|---|---|---|---|",
        "| | | whole, s | embedding, s | accuracy | whole, s | embedding, s | accuracy |",
    ]
    for method, search in SEARCHES.items():
        cells = [method, search, *peer_cells(digits, method), *peer_cells(fashion, method)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def peer_cells(results, method):
    """Return the seconds of the whole, those of the embedding alone, and the accuracy."""
    row, stage = results["whole"][method], results["embedding stage"].get(STAGES.get(method))
    alone = f"{stage['seconds']:.3g}" if stage else "-"
    if "failed" in row:
        return row["failed"].replace("not done after", "not done in"), alone, "-"
    return f"{row['seconds']:.1f}", alone, f"{row['accuracy']:.3f}"


def with_peers(text):
    """Return the text of a page, with the table of peers of today between its marks."""
    inside = re.compile(f"{MARKS[0]}.*?{MARKS[1]}", re.DOTALL)
    return inside.sub(f"{MARKS[0]}\n\n{side_by_side()}\n\n{MARKS[1]}", text)


def main():
    (RESULTS.parent / "benchmarks.md").write_text("\n".join(sections()))
    for path in PAGES_WITH_PEERS:
        path.write_text(with_peers(path.read_text()))


if __name__ == "__main__":
    main()
