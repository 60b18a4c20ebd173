"""The first run of a new user, with time stamps, and whether it came out right.

From Fashion-MNIST in a Parquet file to an embedding, a model, new rows and distances, by the
command line alone. Ends with 1 if anything is wrong or if it took more than four minutes.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.neighbors import KNeighborsClassifier

FASHION = Path("/usr/share/datasets/fashion-mnist")  # apt install dataset-fashion-mnist
LIMIT = 240  # seconds
PAIRS = "0 1 0 2 17 59999"
LEAST_ACCURACY = 0.8

START = perf_counter()


def stage(words):
    """Say what begins now."""
    print(f"[{perf_counter() - START:6.1f} s] {words}", flush=True)


def heatsketch(folder, command):
    """Run a command as it would be typed, and return the object that it prints."""
    stage(f"heatsketch {command}")
    program = Path(sys.executable).with_name("heatsketch")
    done = subprocess.run(
        [program, *command.split(), "--json"], cwd=folder, stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        sys.exit(f"exit code {done.returncode}: {done.stdout.decode()}")
    return json.loads(done.stdout)


def write_table(folder, name, part):
    """Write images as rows, with a column for each pixel, and one each for row and label."""
    images = gzip.decompress((FASHION / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((FASHION / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
    label = np.frombuffer(labels, np.uint8)
    X = np.frombuffer(images, np.uint8).reshape(len(label), -1)
    columns = {f"pixel{i}": column for i, column in enumerate(np.ascontiguousarray(X.T))}
    pq.write_table(pa.table({"row": np.arange(len(X)), **columns, "label": label}), folder / name)


def rows_and_labels(path):
    """Read an embedding back, with a tool that knows nothing of heatsketch."""
    table = pq.read_table(path)
    assert table["row"].to_numpy().tolist() == list(range(table.num_rows))
    names = [name for name in table.column_names if name.startswith("heatsketch")]
    return np.column_stack([table[name].to_numpy() for name in names]), table["label"].to_numpy()


def accuracy(folder):
    """Share of test rows whose label is that of most of their ten neighbours."""
    train, test = (rows_and_labels(folder / name) for name in ("train_rows.parquet", "new.parquet"))
    assert train[0].shape == (60_000, 64), train[0].shape
    assert test[0].shape == (10_000, 64), test[0].shape
    return KNeighborsClassifier(10, n_jobs=-1).fit(*train).score(*test), train[0]


def main(folder):
    """Run all stages, and return whether something is wrong."""
    stage("Fashion-MNIST to Parquet")
    write_table(folder, "train.parquet", "train")
    write_table(folder, "test.parquet", "t10k")
    carried = "--ids row --labels label"
    embedded = heatsketch(
        folder, f"embed train.parquet -o train_rows.parquet --model fashion.heatsketch {carried}"
    )
    heatsketch(folder, f"transform fashion.heatsketch test.parquet -o new.parquet {carried}")
    found = heatsketch(folder, f"distances fashion.heatsketch {PAIRS}")
    about = heatsketch(folder, "info fashion.heatsketch")
    took = perf_counter() - START
    stage("done; now it is checked")

    import heatsketch as library

    pairs = np.array(PAIRS.split(), dtype=int).reshape(-1, 2)
    wanted = library.load(folder / "fashion.heatsketch").sketch_.distances(pairs)
    for name in wanted._fields:
        assert found[name] == getattr(wanted, name).tolist(), name
    share, Y = accuracy(folder)
    one, other = Y[pairs[:, 0]].astype(float), Y[pairs[:, 1]].astype(float)
    np.testing.assert_allclose(np.linalg.norm(one - other, axis=1), found["distance"], rtol=1e-6)
    assert (about["n_samples"], about["n_features"], about["n_components"]) == (60_000, 784, 64)
    assert about["power"] == embedded["power"]
    memory = [embedded[name] / 2**20 for name in ("peak_bytes", "estimated_bytes")]
    stage(f"labels of the new rows right: {share:.1%}, at least {LEAST_ACCURACY:.0%} wanted")
    stage(f"memory of embed: {memory[0]:.0f} MiB, {memory[1]:.0f} estimated")
    stage(f"the run took {took:.0f} s, of {LIMIT} allowed")
    return share < LEAST_ACCURACY or took > LIMIT or memory[0] > 1.25 * memory[1]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
