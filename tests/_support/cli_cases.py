"""The table of what the command line is asked, and what it answers.

Every case names its arguments, the exit code and a part of what is said. The files that it needs
are those of :func:`shelf`, in whose folder it runs.
"""

import gzip
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from registry import circle
from scipy import sparse

from heatsketch import DiffusionMap, HeatSketch
from heatsketch._core.row_names import row_numbers


class Case(NamedTuple):
    name: str
    arguments: str  # as typed; no file of the shelf has a space in its name
    code: int
    says: str
    stdin: str | None = None


def shelf(folder):
    """Put there what the cases are about: good files, bad files and models."""
    X = circle(60).astype(np.float32)
    names = [f"r{i}" for i in range(60)]
    table = {"who": names, "x": X[:, 0], "y": X[:, 1], "kind": ["a", "b", "c"] * 20}
    pq.write_table(pa.table(table), folder / "points.parquet")
    some = {"text": ["left", "right", None], "number": [3, 5, -1], "none": ["", "-1", None]}
    known = {name: [*(first, second), *[rest] * 58] for name, (first, second, rest) in some.items()}
    pq.write_table(pa.table({**table, **known}), folder / "known.parquet")
    pq.write_table(pa.table({**table, "who": ["r0"] * 60}), folder / "twins.parquet")
    pq.write_table(pa.table({**table, "who": X[:, 0]}), folder / "float_ids.parquet")
    pq.write_table(pa.table({"y": X[:, 1], "x": X[:, 0]}), folder / "turned.parquet")
    pq.write_table(pa.table({"x": X[:, 0]}), folder / "narrow.parquet")
    whole = (folder / "points.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    lines = [f"{name},{x:.9g},{y:.9g}" for name, (x, y) in zip(names, X, strict=True)]
    (folder / "points.csv").write_text("\n".join(["who,x,y", *lines]))
    (folder / "Größe-点.csv").write_text("\n".join(["who,x,y", *lines]))
    (folder / "points.csv.gz").write_bytes(gzip.compress((folder / "points.csv").read_bytes()))
    (folder / "ragged.csv").write_text("x,y\n1,2\n3\n")
    (folder / "semicolons.csv").write_text("x;y\n1;2\n3;4\n")
    (folder / "numbers.csv").write_text("1,2\n3,4\n5,6\n")
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("x,y\n")
    (folder / "gap.csv").write_text("x,y\n1,2\n3,\n5,6\n")
    (folder / "points.txt").write_text("1 2")
    np.save(folder / "affinities.npy", np.exp(-np.square(np.subtract.outer(X[:, 0], X[:, 0]))))
    far = X.copy()
    far[7] = 1e6
    np.save(folder / "far.npy", far)
    rows = [f"{a},{x:.9g},{y:.9g}" for a, (x, y) in zip(names, far, strict=True)]
    (folder / "far.csv").write_text("\n".join(["who,x,y", *rows]))
    (folder / "zero.edges").write_text("a b 1\nb c 1\nd d 0\n")
    pairs = list(zip(names, names[1:] + names[:1], strict=True))
    (folder / "edges.csv").write_text("\n".join(["source,target", *(f"{a},{b}" for a, b in pairs)]))
    numbers = [f"{i}\t{(i + 1) % 60}\t1.5\tfriend" for i in reversed(range(60))]
    (folder / "gephi.tsv").write_text("\n".join(["Source\tTarget\tWeight\tType", *numbers]))
    (folder / "wide.csv").write_text("\n".join(["a,b,c,d", *["1,2,3,4"] * 9]))
    (folder / "nan.edges").write_text("a b 1\nb c nan\n")
    pq.write_table(pa.table({"to": range(9), "from": range(1, 10)}), folder / "edges.parquet")
    rows = [f"{a},{x:.9g},{'' if a == 'r7' else y}" for a, (x, y) in zip(names, X, strict=True)]
    (folder / "gap_of_r7.csv").write_text("\n".join(["who,x,height", *rows]))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 2)
    pq.write_table(pa.table({"who": names, "e": lists}), folder / "lists.parquet")
    pq.write_table(pa.table({"who": names, "e": X.tolist()}), folder / "long_lists.parquet")
    uneven = [*X[1:].tolist(), [1.0]]
    pq.write_table(pa.table({"e": uneven}), folder / "uneven.parquet")
    pq.write_table(pa.table({"e": [X.tolist()] * 3}), folder / "deep.parquet")
    ring = sparse.diags_array(np.ones(60)) + sparse.diags_array(np.ones(59), offsets=1)
    sparse.save_npz(folder / "ring.npz", sparse.csr_array(ring + ring.T))
    sparse.save_npz(folder / "points.npz", sparse.csr_matrix(X))
    other = circle(60, seed=1).astype(np.float32)
    pq.write_table(
        pa.table({"who": names, "x": other[:, 0], "y": other[:, 1]}), folder / "other.parquet"
    )
    sparse.save_npz(folder / "other.npz", sparse.csr_matrix(other))
    np.save(folder / "points.npy", X)
    np.save(folder / "wide.npy", np.ones((9, 5)))
    np.save(folder / "complex.npy", X.astype(complex))
    np.save(folder / "objects.npy", np.array([[None, 1]]), allow_pickle=True)
    np.save(folder / "cube.npy", np.ones((3, 3, 3)))
    np.save(folder / "one.npy", X[:1])
    for name, value in (("nan", np.nan), ("inf", np.inf)):
        bad = X.copy()
        bad[7, 1] = value
        np.save(folder / f"{name}.npy", bad)
    np.savez(folder / "two.npz", a=X, b=X)
    edges = [f"{a} {b} 1" for a, b in zip(names, names[1:] + names[:1], strict=True)]
    (folder / "ring.edges").write_text("\n".join([*edges, *(f"{a} {a} 2" for a in names)]))
    (folder / "negative.edges").write_text("a b -1\nb c 1\na a 1\nb b 1\nc c 1\n")
    entries = [f"{i + 1} {j + 1} 1" for i in range(9) for j in range(max(0, i - 1), i + 1)]
    banner = "%%MatrixMarket matrix coordinate real symmetric"
    (folder / "path.mtx").write_text("\n".join([banner, f"9 9 {len(entries)}", *entries]))
    (folder / "link.parquet").symlink_to("points.parquet")
    (folder / "there.parquet").write_text("kept")
    (folder / "there.html").write_text("kept")
    (folder / "pairs.txt").write_text("0 1\n2,3\n4\t5\n")
    (folder / "bad_pairs.txt").write_text("0 1\n2\n")
    (folder / "folder").mkdir()
    models(folder, X)


def models(folder, X):
    sketch = HeatSketch(8).fit(X)
    sketch.save(folder / "m.heatsketch")
    sketch.save(folder / "bare.heatsketch", training_data=False)
    moved = X.copy()
    moved[5] = X[35]
    HeatSketch(8).fit(moved).save(folder / "moved.heatsketch")
    HeatSketch(8, random_state=1).fit(X).save(folder / "seed1.heatsketch")
    HeatSketch(8).fit(X, row_ids=row_numbers([f"r{i}" for i in range(60)])).save(
        folder / "who.heatsketch"
    )
    HeatSketch(8).fit(X, row_ids=np.arange(60) + 7).save(folder / "far.heatsketch")
    DiffusionMap(2).fit(X).save(folder / "map.heatsketch")
    whole = bytearray((folder / "m.heatsketch").read_bytes())
    whole[len(whole) // 2] ^= 1
    (folder / "flipped.heatsketch").write_bytes(whole)


LABEL = "label known.parquet --columns x,y --column"
SETS = f"{LABEL} kind --coverage"
EMBED = "embed points.parquet --columns x,y"
COMPARE = "compare points.parquet other.parquet --columns x,y"
LONG = "n" * 300

CASES = [
    # --- what works
    Case("parquet", f"{EMBED} -o out.parquet", 0, "60 rows, 64 components"),
    Case("csv", "embed points.csv --ids who -o out.csv", 0, "Written: out.csv"),
    Case("gz", "embed points.csv.gz --ids who -o out.tsv.gz", 0, "Written: out.tsv.gz"),
    Case("npy", "embed points.npy -o out.npy --k 4 --power 2.0", 0, "4 components, power 2"),
    Case("zarr", f"{EMBED} -o out.zarr --labels kind", 0, "Written: out.zarr"),
    Case("edges", "embed ring.edges -o out.parquet --k 4", 0, "60 rows, 4 components"),
    Case("matrix market", "embed path.mtx -o out.npy --k 4", 0, "9 rows, 4 components"),
    Case("edges in csv", "embed edges.csv --graph -o out.csv --k 4", 0, "60 rows, 4 components"),
    Case("edges of Gephi", "embed gephi.tsv --graph -o out.csv --k 4", 0, "60 rows, 4 components"),
    Case("edges in parquet", "embed edges.parquet --graph -o out.csv --k 4", 0, "10 rows, 4 comp"),
    Case(
        "edges by columns", "embed wide.csv --graph --columns b,c,d -o out.csv --k 1", 0, "2 rows"
    ),
    Case("edges as points", "embed gephi.tsv --no-graph --labels Type -o o.npz", 0, "60 rows"),
    Case("edges as columns", "embed gephi.tsv --columns Source,Target -o o.npy", 0, "60 rows"),
    Case("sparse points", "embed points.npz -o out.npy --k 4", 0, "60 rows, 4 components"),
    Case("sparse graph", "embed ring.npz --graph -o out.npy --k 4", 0, "60 rows, 4 components"),
    Case("sparse square points", "embed ring.npz --no-graph -o out.npy --k 4", 0, "60 rows, 4 com"),
    Case("lists", "embed lists.parquet --ids who -o out.npz", 0, "60 rows"),
    Case("long lists", "embed long_lists.parquet --columns e -o out.npy", 0, "60 rows"),
    Case("key", "embed two.npz --key b -o out.npy", 0, "60 rows"),
    Case("no header", "embed numbers.csv --no-header -o out.npy", 0, "3 rows"),
    Case("unicode", "embed Größe-点.csv --ids who -o Ausgabe-出.csv", 0, "Written: Ausgabe-出.csv"),
    Case("model too", f"{EMBED} -o out.npy --model new.heatsketch", 0, "out.npy, new.heatsketch"),
    Case("overwrite", f"{EMBED} -o there.parquet --overwrite", 0, "Written"),
    Case("all pairs", f"{EMBED} -o out.npy --neighbors all --epsilon auto", 0, "Written"),
    Case("other ways", f"{EMBED} -o out.npy --metric cosine --normalization bistochastic", 0, ""),
    Case("limit", f"{EMBED} -o out.npy --memory-limit 2GiB", 0, "Written"),
    Case("short option", f"{EMBED} -o out.npy -k 4", 0, "60 rows, 4 components"),
    Case("affinities", "embed affinities.npy --affinity precomputed -o out.npy", 0, "60 rows"),
    Case(
        "other sketch",
        f"{EMBED} -o out.npy --weighting random_walk --random-matrix rademacher",
        0,
        "Written",
    ),
    Case("dry run", f"{EMBED} -o out.parquet --dry-run", 0, "Memory: about"),
    Case(
        "dry graph", "embed ring.edges -o out.parquet --dry-run", 0, "unknown until a graph is read"
    ),
    Case("transform", "transform m.heatsketch points.npy -o out.npy", 0, "60 rows, 8 comp"),
    Case("distances", "distances m.heatsketch 0 1 2 3", 0, "row\tother\tdistance\tlow\thigh\n0\t1"),
    Case("pairs", "distances m.heatsketch --pairs pairs.txt", 0, "4\t5"),
    Case("piped pairs", "distances m.heatsketch --pairs -", 0, "7\t8", "7 8\n"),
    Case("to a table", "distances m.heatsketch 0 1 -o out.csv", 0, "1 distances"),
    Case("drift", "drift m.heatsketch moved.heatsketch", 0, "60 rows in both, 0 came, 0 went"),
    Case("no drift", "drift m.heatsketch m.heatsketch", 0, "No row stands out"),
    Case("bare drift", "drift bare.heatsketch m.heatsketch", 0, "0 % of the heat kernel moved"),
    Case(
        "drift by names",
        "drift who.heatsketch who.heatsketch --names points.parquet --ids who",
        0,
        "No row stands out",
    ),
    Case("compare", f"{COMPARE} -o out.csv", 0, "the tables do not differ at level 0.05"),
    Case("compare numbers", "compare points.npy other.npz -o out.csv", 0, "0 of 120 rows flagged"),
    Case("label", f"{LABEL} text -o out.parquet --ids who", 0, "60 rows, 2 of which had one of 2"),
    Case("label numbers", f"{LABEL} number -o out.csv --labels kind", 0, "Written: out.csv"),
    Case("label by cosine", f"{LABEL} text -o o.npz --metric cosine --neighbors 9", 0, "60 rows"),
    Case("sets", f"{SETS} 0.9 -o out.csv", 0, "Labels in a set: "),
    Case("suspects", f"{LABEL} kind -o out.csv --suspects s.csv", 0, "Suspects: "),
    Case("info", "info m.heatsketch", 0, "HeatSketch"),
    Case("bare info", "info bare.heatsketch", 0, "training data        no"),
    Case("plan", "plan --n 1e3 --d 4 --k 8", 0, "Memory: about"),
    Case("plan that does not fit", "plan --n 1e12 --d 4", 0, "(plan it with --workers "),
    Case("report", "report m.heatsketch -o out.html", 0, "open it in a browser"),
    Case(
        "report in colours",
        "report m.heatsketch --data points.parquet --color kind --color x -o o.html --powers 1,8",
        0,
        "60 rows",
    ),
    Case(
        "report by names",
        "report who.heatsketch --data points.csv --ids who --color x -o o.html --title Who",
        0,
        "Written: o.html",
    ),
    # --- 2: wrong arguments
    Case("unknown command", "embbed points.npy", 2, "'embbed'; perhaps 'embed' is meant"),
    Case("no such command", "frobnicate", 2, "use embed, transform, "),
    Case("unknown option", f"{EMBED} -o out.npy --colour blue", 2, "--colour"),
    Case("no output", "embed points.npy", 2, "output"),
    Case("power word", f"{EMBED} -o out.npy --power fast", 2, "'fast' is unknown; use all or a nu"),
    Case("power 0", f"{EMBED} -o out.npy --power 0", 2, "use all or a number of at least 1"),
    Case("power inf", f"{EMBED} -o out.npy --power inf", 2, "'--power': 'inf' is unknown"),
    Case("epsilon", f"{EMBED} -o out.npy --epsilon 0", 2, "use auto, local or a positive number"),
    Case("epsilon nan", f"{EMBED} -o out.npy --epsilon nan", 2, "'--epsilon': 'nan' is unknown"),
    Case("neighbors", f"{EMBED} -o out.npy --neighbors 1", 2, "use all or an integer of"),
    Case("metric", f"{EMBED} -o out.npy --metric crow", 2, "'crow' is unknown; use euclidean, cos"),
    Case(
        "normalization",
        f"{EMBED} -o out.npy --normalization none",
        2,
        "use auto, degree, symm",
    ),
    Case("seed", f"{EMBED} -o out.npy --seed -1", 2, "--seed"),
    Case("weighting", f"{EMBED} -o o.npy --weighting no", 2, "use random_walk or symmetric"),
    Case("random matrix", f"{EMBED} -o o.npy --random-matrix no", 2, "use gaussian or rademacher"),
    Case("affinity", f"{EMBED} -o o.npy --affinity cosine", 2, "use gaussian or precomputed"),
    Case("large seed", f"{EMBED} -o out.npy --seed 4294967296", 2, "4294967295"),
    Case("components", f"{EMBED} -o out.npy --components 0", 2, "at least 1; use one like 64"),
    Case("size", f"{EMBED} -o out.npy --memory-limit plenty", 2, "2GiB"),
    Case("no unit", f"{EMBED} -o out.npy --memory-limit 2", 2, "'2' is 2 bytes; give a unit"),
    Case("empty name", "embed points.parquet -o out.npy --columns x,,y", 2, "names with commas"),
    Case(
        "graph with labels", "embed ring.edges -o out.csv --labels a", 2, "--labels is for tables"
    ),
    Case(
        "edges or points",
        "embed edges.csv -o out.csv",
        2,
        "'source' and 'target' are the ends of edges; use --graph to embed the nodes of a graph, "
        "or --no-graph",
    ),
    Case("edges of parquet or points", "embed edges.parquet -o out.csv", 2, "use --graph"),
    Case("edges of Gephi or points", "embed gephi.tsv --labels Type -o o.csv", 2, "use --graph"),
    Case("matrix or points", "embed ring.npz -o out.npy", 2, "matrix of shape (60, 60); use --gra"),
    Case("labels of edges", "embed gephi.tsv --graph --labels Type -o o.csv", 2, "is for tables"),
    Case("odd rows", "distances m.heatsketch 0 1 2", 2, "even number"),
    Case("no rows", "distances m.heatsketch", 2, "--pairs"),
    Case("rows twice", "distances m.heatsketch 0 1 --pairs pairs.txt", 2, "either"),
    Case("text not there", "distances who.heatsketch r0 0", 2, "use its ids, which are text, as"),
    Case("number not there", "distances far.heatsketch 7 0", 2, "use its ids, for instance 7"),
    Case("row not there", "distances m.heatsketch 0 60", 2, "row '60' is not in m.heatsketch"),
    Case("confidence", "distances m.heatsketch 0 1 --confidence 95", 2, "between 0 and 1"),
    Case("other model", "distances map.heatsketch 0 1", 2, "holds a DiffusionMap"),
    Case("level", f"{COMPARE} -o out.csv --level 5", 2, "'5' must be between 0 and 1; use 0.05"),
    Case("distances of two", f"{COMPARE} -o out.csv --metric precomputed", 2, "tables of points"),
    Case(
        "few permutations",
        f"{COMPARE} -o out.csv --permutations 9",
        4,
        "--permutations 9 allows",
    ),
    Case("widths", "compare points.npy wide.npy -o out.csv", 4, "2 columns of numbers, and wide"),
    Case("graphs compared", "compare ring.edges ring.edges -o out.csv", 4, "is a graph; compare"),
    Case("no such units", f"{COMPARE} --units age -o out.csv", 3, "age"),
    Case("page of a comparison", f"{COMPARE} -o out.csv --page there.html", 5, "there.html exists"),
    Case("numbers of a comparison", f"{COMPARE} -o out.npy", 5, "numbers only"),
    Case("names alone", "drift m.heatsketch m.heatsketch --names points.csv", 2, "go together"),
    Case("plan workers", "plan --n 10 --d 4 --workers -1", 2, "--workers"),
    Case("plan all pairs", "plan --n 10 --d 4 --workers 2 --neighbors all", 2, "like 15"),
    Case("report of a map", "report map.heatsketch -o o.html", 2, "holds a DiffusionMap"),
    Case("colour of what", "report m.heatsketch --color kind -o o.html", 2, "--data"),
    Case(
        "report of rows by ids",
        "report who.heatsketch --data points.parquet --color kind -o o.html",
        2,
        "who.heatsketch knows its rows by ids; name their column of points.parquet with --ids",
    ),
    Case(
        "report of numbered rows",
        "report far.heatsketch --data points.parquet --color kind -o o.html",
        2,
        "far.heatsketch knows its rows by ids",
    ),
    Case("report powers", "report m.heatsketch --powers 1,0 -o o.html", 2, "no integer of"),
    Case("report confidence", "report m.heatsketch --confidence 2 -o o.html", 2, "between 0 and 1"),
    Case("plan columns", "plan --n 10 --d 0", 2, "'--d' / '--columns': '0' is no integer"),
    Case("plan word", "plan --n many --d 4", 2, "'many' is no integer"),
    Case("plan dtype", "plan --n 10 --d 4 --dtype int8", 2, "float32 or float64"),
    Case("label without column", "label known.parquet -o out.csv", 2, "column"),
    Case("coverage", f"{SETS} 90 -o out.csv", 2, "'90' must be between 0 and 1; use 0.9"),
    # --- 3: a file cannot be read
    Case(
        "label by what",
        f"{LABEL} txt -o out.csv",
        3,
        "--column 'txt' is not in it; perhaps 'text' is meant",
    ),
    Case(
        "label of what", f"{LABEL} text --labels sort -o o.csv", 3, "--labels 'sort' is not in it"
    ),
    Case("missing file", "embed nowhere.npy -o out.npy", 3, "No such file or directory; check the"),
    Case("missing graph", "embed nowhere.edges -o out.csv", 3, "No such file"),
    Case("unknown format", "embed points.txt -o out.npy", 3, "'.txt' is not that of a table"),
    Case("empty file", "embed empty.csv -o out.csv", 3, "it is empty"),
    Case("cut file", "embed cut.parquet -o out.csv", 3, "cut.parquet"),
    Case("ragged", "embed ragged.csv -o out.csv", 3, "2"),
    Case(
        "missing column", "embed points.parquet -o o.npy --columns X,y", 3, "perhaps 'x' is meant"
    ),
    Case("missing label", f"{EMBED} -o o.csv --labels sort", 3, "--labels 'sort' is not in it"),
    Case("missing ids", f"{EMBED} -o out.csv --ids whom", 3, "perhaps 'who' is meant"),
    Case("text column", "embed points.parquet -o out.csv", 3, "through with --labels who,kind"),
    Case("semicolons", "embed semicolons.csv -o out.csv", 3, "has ';' where columns have ','"),
    Case("complex", "embed complex.npy -o out.npy", 3, "no real number"),
    Case("pickle", "embed objects.npy -o out.npy", 3, "pickle"),
    Case("three axes", "embed cube.npy -o out.npy", 3, "two axes"),
    Case("names or numbers", "embed numbers.csv -o out.npy", 3, "--header or --no-header"),
    Case("which array", "embed two.npz -o out.npy", 3, "two.npz"),
    Case(
        "which are ends", "embed wide.csv --graph -o out.csv", 3, "--columns source,target,weight"
    ),
    Case("graph of npy", "embed points.npy --graph -o out.csv", 3, "'.npy' is not that of a graph"),
    Case("no square graph", "embed points.npz --graph -o out.csv", 3, "60 rows and 2 columns"),
    Case("no sparse graph", "embed two.npz --graph -o out.csv", 3, "scipy.sparse.save_npz"),
    Case("no points", "embed ring.edges --no-graph -o out.csv", 3, "not that of a table"),
    Case("uneven lists", "embed uneven.parquet -o out.csv", 3, "row 59 of column 'e' is a list of"),
    Case("lists of lists", "embed deep.parquet -o out.csv", 3, "write a number, or a list of"),
    Case("ids of npy", "embed points.npy -o out.npy --ids who", 3, "means nothing here"),
    Case("no such model", "info nowhere.heatsketch", 3, "No such file"),
    Case("no model", "info points.npy", 3, "points.npy"),
    Case("flipped bit", "transform flipped.heatsketch points.npy -o out.npy", 3, "flipped"),
    Case("versions that are none", "info mute.heatsketch", 3, "mute.heatsketch: its versions is 3"),
    Case("newer model", "info newer.heatsketch", 3, "newer.heatsketch"),
    Case("columns gone", "transform named.heatsketch narrow.parquet -o out.npy", 3, "'y'"),
    Case("bad pairs", "distances m.heatsketch --pairs bad_pairs.txt", 3, "line 2 is '2'"),
    Case("no pairs", "distances m.heatsketch --pairs empty.csv", 3, "it has no pairs"),
    Case("binary pairs", "distances m.heatsketch --pairs points.csv.gz", 3, "it is no text"),
    Case("empty pipe", "distances m.heatsketch --pairs -", 3, "it has no pairs", ""),
    Case("report of nothing", "report nowhere.heatsketch -o o.html", 3, "No such file"),
    Case(
        "missing colour",
        "report m.heatsketch --data points.parquet --color sort -o o.html",
        3,
        "--color 'sort' is not in it",
    ),
    # --- 4: data that cannot be embedded, or compared
    Case("no label", f"{LABEL} none -o out.csv", 4, "known.parquet has no label in column 'none'"),
    Case(
        "few labels for sets",
        f"{LABEL} text --coverage 0.9 -o out.csv",
        4,
        "--coverage 0.9 needs 9 labels to be held out, and 1 are",
    ),
    Case("label all pairs", f"{LABEL} text -o o.csv --neighbors all", 4, "--neighbors 15"),
    Case(
        "part of a step",
        "embed path.mtx -o out.npy --power 1.5",
        4,
        "use an integer power, a kernel of all pairs (--neighbors all)",
    ),
    Case("NaN", "embed nan.npy -o out.npy", 4, "row 7"),
    Case("infinity", "embed inf.npy -o out.npy", 4, "row 7"),
    Case("gap", "embed gap.csv -o out.csv", 4, "gap.csv contains NaN in row 1, column 1 ('y')"),
    Case(
        "gap of a name",
        "embed gap_of_r7.csv --ids who --columns height -o out.csv",
        4,
        "gap_of_r7.csv contains NaN in row 7 ('r7'), column 0 ('height')",
    ),
    Case("weight NaN", "embed nan.edges -o o.csv", 4, "NaN in row 1 ('b'), column 2 ('c')"),
    Case("twins", "embed twins.parquet --columns x,y --ids who -o o.csv", 4, "row 0 is 'r0' and"),
    Case("float ids", "embed float_ids.parquet --columns x,y --ids who -o o.csv", 4, "integers or"),
    Case("negative", "embed negative.edges -o out.csv", 4, "-1"),
    Case(
        "new NaN", "transform m.heatsketch nan.npy -o out.npy", 4, "nan.npy contains NaN in row 7"
    ),
    Case(
        "too wide", "transform m.heatsketch wide.npy -o o.npy", 4, "5 columns of numbers, and m.h"
    ),
    Case("a graph", "transform m.heatsketch ring.edges -o out.csv", 4, "is a graph"),
    Case("bare", "transform bare.heatsketch points.npy -o out.npy", 4, "needs the training data"),
    Case("seeds", "drift m.heatsketch seed1.heatsketch", 4, "seed=0 here, but 1"),
    Case("no common rows", "drift who.heatsketch m.heatsketch", 4, "have no row in common; give"),
    Case("bare report", "report bare.heatsketch -o o.html", 4, "needs the training data"),
    Case(
        "other rows",
        "report m.heatsketch --data numbers.csv --no-header --color x0 -o o.html",
        4,
        "numbers.csv has 3 rows, and m.heatsketch has 60",
    ),
    Case(
        "other names",
        "report m.heatsketch --data points.csv --ids who --color x -o o.html",
        4,
        "lacks 60 of the 60 rows",
    ),
    # --- 5: an output cannot be written
    Case("suspects onto output", f"{LABEL} text -o o.csv --suspects o.csv", 5, "also the input"),
    Case("suspects in npy", f"{LABEL} text -o o.csv --suspects s.npy", 5, ".npy"),
    Case("labels in npy", f"{LABEL} text -o out.npy", 5, ".npy"),
    Case("labels there", f"{LABEL} text -o there.parquet", 5, "there.parquet"),
    Case("exists", f"{EMBED} -o there.parquet", 5, "pass --overwrite to replace it"),
    Case("model exists", f"{EMBED} -o out.npy --model m.heatsketch", 5, "pass --overwrite"),
    Case("same", f"{EMBED} -o points.parquet --overwrite", 5, "is also the input"),
    Case("same by a way around", f"{EMBED} -o folder/../points.parquet", 5, "is also the input"),
    Case("same by a link", f"{EMBED} -o link.parquet --overwrite", 5, "is also the input"),
    Case(
        "model onto input", f"{EMBED} -o o.npy --model points.parquet --overwrite", 5, "the input"
    ),
    Case("model onto output", f"{EMBED} -o out.npy --model out.npy", 5, "is also the input"),
    Case("unknown output", f"{EMBED} -o out.xlsx", 5, "'.xlsx' is not that of a table"),
    Case("no folder", f"{EMBED} -o nowhere/out.npy", 5, "make the folder first"),
    Case("a file as folder", f"{EMBED} -o points.csv/out.npy", 5, "one part of the path is a file"),
    Case("long name", f"{EMBED} -o {LONG}.npy", 5, "use a shorter name"),
    Case("a folder", f"{EMBED} -o folder.npy/../folder --overwrite", 5, "folder"),
    Case("no rights", f"{EMBED} -o /proc/out.npy", 5, "cannot write /proc/out.npy"),
    Case("labels to npy", f"{EMBED} -o out.npy --labels kind", 5, "holds numbers only"),
    Case("nodes to npy", "embed ring.edges -o out.npy", 5, "holds numbers only"),
    Case("dry, exists", f"{EMBED} -o there.parquet --dry-run", 5, "pass --overwrite"),
    Case("onto the model", "transform m.heatsketch points.npy -o m.heatsketch", 5, "the input"),
    Case("rows exist", "transform m.heatsketch points.npy -o wide.npy", 5, "pass --overwrite"),
    Case("distances exist", "distances m.heatsketch 0 1 -o points.csv", 5, "pass --overwrite"),
    Case(
        "distances onto pairs", "distances m.heatsketch --pairs pairs.txt -o pairs.txt", 5, "input"
    ),
    Case("report exists", "report m.heatsketch -o there.html", 5, "pass --overwrite"),
    Case("report of no page", "report m.heatsketch -o o.pdf", 5, "use one of .html, .htm"),
    Case("report onto model", "report m.heatsketch -o m.heatsketch --overwrite", 5, "the input"),
    Case(
        "report onto data",
        "report m.heatsketch --data points.csv --color x -o points.csv --overwrite",
        5,
        "the input",
    ),
    Case("report nowhere", "report m.heatsketch -o nowhere/o.html", 5, "make the folder first"),
    # --- 6: would not fit in memory
    Case("too many columns", f"{EMBED} -o out.npy --k 1e12", 6, "or use a machine with more"),
    Case("little memory", f"{EMBED} -o out.npy --memory-limit 10MB", 6, "raise --memory-limit"),
    Case(
        "graph in little",
        "embed ring.edges -o out.csv --memory-limit 1GiB",
        6,
        "--memory-limit 1.0 GiB: how",
    ),
]
