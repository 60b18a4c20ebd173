"""Write docs/developer/benchmarks.md from those results in docs/benchmarks that are there."""

from timing import RESULTS, read

HEAD = """# Benchmarks

This page was written by `benchmarks/page.py` from the files in `docs/benchmarks`, which the other
scripts of `benchmarks/` wrote. `make evidence` runs them, in hours. Each file has the version,
the date, the command and the libraries of its results. Older files name the commit that added
them instead, with its date. `make chaos` runs `chaos` and `cluster`, and `make grid` runs
`cluster_grid` (see [](reliability.md)).

The machine had 2 cores (x86-64 with AVX-512), 24 GiB and no GPU. It was shared, so that absolute
times vary by a factor of two. If there is a *control*, both sides were timed in turn in one run,
and the control is one side against itself. Other times are rough, mostly of single runs.
Label accuracy is one measure of an embedding; measure what matters for your own purpose.

Figures on other pages:

| page | script | results in `docs/benchmarks` |
|---|---|---|
| [](../background/usefulness.md), README | `usefulness` | `usefulness.json` |
| [](../background/method.md) | `all_times` | `all_times.json` |
| [](../background/method.md) | `constants` | `constants.json` |
| [](../background/distances.md) | `selection` | `selection.json` |
| [](../background/distances.md) | `drift_level` | `drift_level.json` |
| [](../background/near_isometry.md) | `isometry` | `isometry.json` |
| [](../how_to/scanpy.md) | `pseudotime` | `pseudotime.json` |
| [](../how_to/scale.md) | `cluster_cost` | `cluster-calibration.json` |
"""


def table(rows):
    """Return rows, which are dictionaries with the same keys, as a table."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([row.get(name) for name in names] for row in rows)]
    cells = (map(readable, line) for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"


def readable(cell):
    """Return a cell as text, with three digits."""
    if isinstance(cell, float):
        return f"{cell:.3g}"
    return "-" if cell is None else str(cell)


def sections():
    yield HEAD
    local = scaling, million, graphs, products, powers, small, limits, eigenpairs
    for section in (*local, cluster, chaos, epsilon, compare):
        if (RESULTS / f"{section.__name__}.json").exists():
            yield from section(read(section.__name__))


def scaling(rows):
    yield """## From 1e5 to 1e7 points

`HeatSketch().fit(X)`, where `X` is a manifold of dimension 4 in 16 features with noise, float32
(`benchmarks/scaling.py`). Memory is what the fit takes besides `X`, with the libraries that it
loads; predictions are by `estimate_memory`.

![Time and memory over the number of points](../benchmarks/scaling.png)
"""
    yield table(rows)


def million(found):
    spread = found["distances on a tenth, over those of the exact graph"]
    yield f"""## A fit of a million points against a graph alone

On 1e6 points with 32 features `HeatSketch().fit` took
**{found["default fit / pynndescent graph"]:.2f}** of the time in which pynndescent, already
compiled, finds its graph of 15 neighbours. `HeatSketch(32, power=8).fit` took
{found["fit at power 8 / pynndescent graph"]:.2f}
(control {found["control: pynndescent / pynndescent"]:.2f}). At power 8 the steps after the graph
took {found["after the graph / graph"]:.2f} of the time of the graph. On a tenth of these
points, distances from our graph and from the exact graph with the same random matrix were compared:
their ratio has a mean of {spread["mean"]:.3f} and a standard deviation of {spread["spread"]:.3f}.
The error of the sketch is 0.125 (`benchmarks/million.py`).
"""


def graphs(found):
    yield """## Neighbour graphs of equal recall

Seconds to find 15 neighbours of all points, with two threads. For the others: the fastest setting
with a recall of at least ours minus 0.005, or else the slowest (`benchmarks/graphs.py`).
"""
    for name, methods in found.items():
        rows = [
            {"method": method, "seconds": row["seconds"], "recall": f"{row['recall']:.3f}"}
            for method, row in methods.items()
        ]
        yield f"{name}:\n\n{table(rows)}"


def products(ratios):
    yield """## Products

Time of eight steps of `sketch`, which remove the stationary direction and scale, over that of eight
products of MKL with the same arrays: 1e6 rows of 17 entries in a local order, float32. Both write
to new memory, MKL once also to used memory (`benchmarks/products.py`).
"""
    yield table([{"what": name, "ratio": ratio} for name, ratio in ratios.items()])


def powers(found):
    yield """## Power 1024

Chebyshev sums against 1024 plain steps, timed in turn: 1e5 points on a Swiss roll, 32 columns
(`benchmarks/powers.py`).
"""
    yield table([{"dtype": dtype} | row for dtype, row in found.items()])


def small(ratios):
    yield """## Random numbers and import

Our Gaussian random numbers, which are the same on every machine, against those of numpy: 1e6 times
32 in float32 (ours in two threads); and the time that `import heatsketch` adds
(`benchmarks/small.py`).
"""
    yield table([{"what": name, "ratio": ratio} for name, ratio in ratios.items()])


def eigenpairs(found):
    yield """## Eigenpairs from a sketch

`sketch(graph, 64).diffusion_map(10)` against scipy's eigsh on the same operator, 1e5 points in
float64, one run of each (`benchmarks/eigenpairs.py`).
"""
    yield table([{"what": name, "figure": x} for name, x in found.items()])


def limits(rows):
    yield """## Limits of memory

With `LocalEngine(memory_limit=...)` a fit keeps to the limit, or raises an error before it starts.
`n_neighbors=None` keeps all pairs in memory (`benchmarks/limits.py`).
"""
    yield table(rows)


CLUSTER_CONTROL = "control: one process / itself"


def cluster(found):
    yield """## A cluster

Two workers of 6 GiB and a scheduler, all processes of this machine, on the manifold of the first
table (`benchmarks/cluster.py`). The client of the second table had a limit of 1 GiB. The time of
a step with hardly any computation is that of its messages.
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


def whole_row(n, row):
    return {
        "points, from zarr": f"{int(n):.0e}",
        "seconds": round(row["seconds"]),
        "client, GiB": round(row["peak of the client, GiB"], 2),
        "workers, GiB": round(max(row["peaks of the workers, GiB"]), 2),
        "to the client, bytes": row["bytes to the client, as far as logged"],
    }


HARMS = {
    "kill_one": "a worker is killed",
    "kill_all": "all workers are killed",
    "stop_one": "a worker is stopped for 10 s",
    "fill_memory": "a worker exceeds its memory limit and is killed by its nanny",
}


def chaos(found):
    yield """## Killed workers

The same fit while workers are killed or stopped at random moments; results are compared with those
of one process (`benchmarks/chaos.py`, `make chaos`): 16 384 points in four blocks on two workers,
40 products, a checkpoint after each.
"""
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
        same = "the same bits" if row["bit-identical"] else "different bits"
        yield f"""A driver that was killed {row["deaths"]} times, after each line of its journal
(a line for each finished stage or step), and started again each time, gave {same};
of {row["lines"]} lines, {row["again"]} were written again.
"""


def epsilon(found):
    yield """## Choices

`weights="gaussian"`: mean log L of the paper's experiments, divided by that with the paper's
epsilon; and the estimated dimensions (`benchmarks/epsilon.py`).
"""
    yield table(found["distortion"])
    yield table([row for row in found["dimensions"] if row.get("seed", 0) == 0])


def compare(found):
    yield """## Comparing two samples

`compare` at level 0.05 with 199 permutations (`benchmarks/compare.py`). Shares of runs that reject
if nothing differs:
"""
    yield table(_runs(found["level"], "setting"))
    if "power" in found:
        yield """Power: shares of runs that reject, 600 + 600 rows. MMD has a Gaussian kernel of
median bandwidth and 199 permutations; the logistic classifier is tested by its held-out accuracy.
"""
        yield table(_runs(found["power"], "data and change"))
    if "power of peers" in found:
        yield """The defaults of alibi-detect (Kolmogorov-Smirnov tests with Bonferroni's
correction) and of Evidently for embeddings (a classifier), on the first of the same samples.
"""
        yield table(_runs(found["power of peers"], "data and change"))
    if "flags" in found:
        yield """Flags: precision is the share of flagged rows that are of the class, or of the
cluster, that changed.
"""
        yield table(_runs(found["flags"], "data and change"))
    if "size" in found:
        yield table(_runs(found["size"], "rows x features"))
    if "size on Dask" in found:
        yield """On two processes of this machine, with Dask:
"""
        yield table(_runs(found["size on Dask"], "rows x features"))


def _runs(rows, name):
    """Return named rows as a table has them, without what a page does not show."""
    return [
        {name: title} | {key: value for key, value in row.items() if key != "commit"}
        for title, row in rows.items()
    ]


def main():
    (RESULTS.parent / "developer" / "benchmarks.md").write_text("\n".join(sections()))


if __name__ == "__main__":
    main()
