"""Files for tests of the command line, and commands with their exit codes."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from registry import circle
from scipy import sparse

from heatsketch import DiffusionMap, HeatSketch

N = 60
NAMES = [f"r{i}" for i in range(N)]


def write_files(folder):
    """Write good files, bad files and models."""
    X = circle(N).astype(np.float32)
    table = {"who": NAMES, "x": X[:, 0], "y": X[:, 1], "kind": ["a", "b", "c"] * (N // 3)}
    some = {"text": ["left", "right", None], "number": [3, 5, -1], "none": ["", "-1", None]}
    known = {name: [*values[:2], *values[2:] * (N - 2)] for name, values in some.items()}
    pq.write_table(pa.table(table), folder / "points.parquet")
    pq.write_table(pa.table({**table, **known}), folder / "known.parquet")
    pq.write_table(pa.table({**table, "who": ["r0"] * N}), folder / "twins.parquet")
    pq.write_table(pa.table({**table, "who": X[:, 0]}), folder / "float_ids.parquet")
    pq.write_table(pa.table({"y": X[:, 1], "x": X[:, 0]}), folder / "turned.parquet")
    pq.write_table(pa.table({"to": range(9), "from": range(1, 10)}), folder / "edges.parquet")
    (folder / "cut.parquet").write_bytes((folder / "points.parquet").read_bytes()[:900])
    (folder / "link.parquet").symlink_to("points.parquet")
    _write_text(folder, X)
    _write_arrays(folder, X)
    HeatSketch(8).fit(X).save(folder / "m.heatsketch")
    HeatSketch(8).fit(X, ids=NAMES).save(folder / "who.heatsketch")
    HeatSketch(8).fit(X).sketch_.save(folder / "bare.heatsketch", graph=False)
    HeatSketch(8, random_state=1).fit(X).save(folder / "seed1.heatsketch")
    DiffusionMap(2).fit(X).save(folder / "map.heatsketch")
    whole = bytearray((folder / "m.heatsketch").read_bytes())
    whole[len(whole) // 2] ^= 1
    (folder / "flipped.heatsketch").write_bytes(whole)
    for name in ("there.csv", "there.html", "there.heatsketch"):
        (folder / name).write_text("kept")


def _write_text(folder, X):
    lines = ["who,x,y", *(f"{a},{x:.9g},{y:.9g}" for a, (x, y) in zip(NAMES, X, strict=True))]
    (folder / "points.csv").write_text("\n".join(lines))
    (folder / "Größe-点.csv").write_text("\n".join(lines))
    (folder / "numbers.csv").write_text("1,2\n3,4\n5,6\n")
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("x,y\n")
    (folder / "gap.csv").write_text("x,y\n1,2\n3,\n5,6\n")
    links = list(zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))
    rows = [f"{a},{b},1.5" for a, b in links]
    (folder / "edges.csv").write_text("\n".join(["source,target,weight", *rows]))
    (folder / "ring.edges").write_text("\n".join(f"{a} {b}" for a, b in links))
    (folder / "negative.edges").write_text("a b -1\nb c 1\n")
    (folder / "pairs.txt").write_text("0 1\n2,3\n4\t5\n")
    (folder / "bad_pairs.txt").write_text("0 1\n2\n")


def _write_arrays(folder, X):
    np.save(folder / "points.npy", X)
    np.save(folder / "other.npy", circle(N, seed=1).astype(np.float32))
    np.save(folder / "wide.npy", np.ones((9, 5)))
    np.save(folder / "cube.npy", np.ones((3, 3, 3)))
    np.save(folder / "nan.npy", np.where(np.arange(N)[:, None] == 7, np.nan, X))
    np.savez(folder / "two.npz", a=X, b=X)
    sparse.save_npz(folder / "points.npz", sparse.csr_matrix(X))
    ring = sparse.diags_array(np.ones(N)) + sparse.diags_array(np.ones(N - 1), offsets=1)
    sparse.save_npz(folder / "ring.npz", sparse.csr_array(ring + ring.T))
    np.save(folder / "weights.npy", np.exp(-np.square(np.subtract.outer(X[:, 0], X[:, 0]))))
    np.save(folder / "distances.npy", np.abs(np.subtract.outer(X[:, 0], X[:, 0])))


EMBED = "embed points.parquet --columns x,y"
LABEL = "label known.parquet --columns x,y --column"
COMPARE = "compare points.npy other.npy"

# One command of each kind that works, whose output is out.csv or out.html.
EACH = {
    "embed": f"{EMBED} -o out.csv",
    "transform": "transform m.heatsketch points.npy -o out.csv",
    "distances": "distances m.heatsketch 0 1 2 3 -o out.csv",
    "cluster": "cluster m.heatsketch points.npy -n 3 -o out.csv",
    "smooth": "smooth m.heatsketch points.npy -o out.csv",
    "drift": "drift m.heatsketch m.heatsketch",
    "compare": f"{COMPARE} -o out.csv",
    "label": f"{LABEL} text -o out.csv",
    "info": "info m.heatsketch",
    "plan": "plan --n 1e3 --d 4 -k 8",
    "report": "report m.heatsketch -o out.html",
}

WORKING = [
    *EACH.values(),
    "embed Größe-点.csv --ids who -o Ausgabe-出.csv",
    "embed numbers.csv --no-header -o out.npy",
    "embed two.npz --key b -o out.feather",
    "embed points.npz -o out.npy -k 4 --power 2",
    f"{EMBED} -o out.zarr --labels kind",
    f"{EMBED} -o out.npy --neighbors all --weights gaussian",
    f"{EMBED} -o out.npy --weights 0.5 --metric cosine --normalization bistochastic",
    f"{EMBED} -o out.npy --model new.heatsketch",
    "embed ring.edges -o out.csv",
    "embed edges.csv --graph -o out.csv --normalization symmetric",
    "embed edges.csv --labels source,target -o out.csv",
    "embed ring.npz --graph -o out.npy",
    "embed weights.npy --graph -o out.npy",
    "embed distances.npy --metric precomputed -o out.npy",
    "transform map.heatsketch points.npy -o out.npy",
    "distances bare.heatsketch 0 1",
    "distances who.heatsketch r0 r1 r0 r2",
    "distances m.heatsketch --pairs pairs.txt",
    "drift bare.heatsketch m.heatsketch",
    f"{LABEL} number --ids who --suspects suspects.csv -o out.csv",
    f"{LABEL} kind --coverage 0.9 -o out.csv --metric cosine --neighbors 9",
]

REJECTED = [
    # 2: wrong arguments
    (2, "embbed points.npy"),
    (2, "embed points.npy"),
    *((2, f"{EMBED} -o out.npy --power {value}") for value in ("fast", "0", "inf", "nan")),
    *((2, f"{EMBED} -o out.npy --weights {value}") for value in ("auto", "-1", "nan")),
    *((2, f"{EMBED} -o out.npy --neighbors {value}") for value in ("1", "1.5", "none")),
    *((2, f"{EMBED} -o out.npy --memory-limit {value}") for value in ("plenty", "2", "-1GB")),
    *((2, f"{EMBED} -o out.npy --seed {value}") for value in ("-1", "4294967296")),
    (2, f"{EMBED} -o out.npy --components 0"),
    (2, "embed points.parquet -o out.npy --columns x,,y"),
    (2, "embed ring.edges -o out.csv --neighbors 9"),
    (2, "distances m.heatsketch 0 1 2"),
    (2, "distances m.heatsketch"),
    (2, "distances m.heatsketch 0 1 --pairs pairs.txt"),
    (2, "distances m.heatsketch 0 60"),
    (2, "distances who.heatsketch r0 0"),
    (2, "distances m.heatsketch 0 1 --confidence 95"),
    (2, "distances map.heatsketch 0 1"),
    (2, "drift map.heatsketch m.heatsketch"),
    (2, "transform bare.heatsketch points.npy -o out.npy"),
    (2, f"{COMPARE} -o out.csv --metric precomputed"),
    (2, "smooth who.heatsketch points.npy -o out.csv"),
    (2, "smooth m.heatsketch points.npy --time -1 -o out.csv"),
    (2, "cluster m.heatsketch points.npy -n 0 -o out.csv"),
    (2, "report m.heatsketch --color kind -o out.html"),
    (2, "report who.heatsketch --data points.parquet --color kind -o out.html"),
    (2, "plan --n many --d 4"),
    # 3: a file cannot be read, or has the wrong format
    (3, "embed empty.csv -o out.csv"),
    (3, "embed cut.parquet -o out.csv"),
    (3, "embed cube.npy -o out.npy"),
    (3, "embed numbers.csv -o out.npy"),
    (3, "embed two.npz -o out.npy"),
    (3, "embed points.parquet -o out.csv"),
    (3, "embed points.parquet -o out.npy --columns X,y"),
    (3, f"{EMBED} -o out.csv --ids whom"),
    (3, "embed edges.csv -o out.csv"),
    (3, "embed edges.parquet -o out.csv"),
    (3, "transform m.heatsketch ring.edges -o out.csv"),
    (3, "transform flipped.heatsketch points.npy -o out.npy"),
    (3, "info points.npy"),
    (3, "distances m.heatsketch --pairs bad_pairs.txt"),
    (3, f"{LABEL} txt -o out.csv"),
    # 4: data that cannot be used
    (4, "embed header.csv -o out.csv"),
    (4, "embed nan.npy -o out.npy"),
    (4, "embed gap.csv -o out.csv"),
    (4, "embed negative.edges -o out.csv"),
    (4, f"{EMBED} -o out.npy --weights 0"),
    (4, "embed points.npy --graph -o out.csv"),
    (4, "embed twins.parquet --columns x,y --ids who -o out.csv"),
    (4, "embed float_ids.parquet --columns x,y --ids who -o out.csv"),
    (4, "transform m.heatsketch nan.npy -o out.npy"),
    (4, "transform m.heatsketch wide.npy -o out.npy"),
    (4, "drift m.heatsketch seed1.heatsketch"),
    (4, "drift who.heatsketch m.heatsketch"),
    (4, "compare points.npy wide.npy -o out.csv"),
    (4, "smooth m.heatsketch wide.npy -o out.csv"),
    (4, "cluster m.heatsketch points.npy -n 61 -o out.csv"),
    (4, f"{LABEL} none -o out.csv"),
    (4, f"{LABEL} text --coverage 0.9 -o out.csv"),
    (4, "report bare.heatsketch -o out.html"),
    # 5: an output cannot be written
    (5, f"{EMBED} -o out.npy --model there.heatsketch"),
    (5, f"{EMBED} -o there.csv --dry-run"),
    (5, f"{EMBED} -o points.parquet --overwrite"),
    (5, f"{EMBED} -o link.parquet --overwrite"),
    (5, f"{EMBED} -o out.npy --model points.parquet --overwrite"),
    (5, f"{EMBED} -o out.npy --model out.npy"),
    (5, f"{EMBED} -o nowhere/out.npy"),
    (5, "transform m.heatsketch points.npy -o m.heatsketch"),
    (5, "distances m.heatsketch --pairs pairs.txt -o pairs.txt"),
    (5, f"{LABEL} text -o out.csv --suspects out.csv"),
    (5, f"{COMPARE} -o out.csv --page there.html"),
    (3, f"{EMBED} -o out.xlsx"),
    # 6: too little memory
    (6, f"{EMBED} -o out.npy --memory-limit 10MB"),
    (6, "embed ring.edges -o out.csv --memory-limit 1GiB"),
]
