"""Damage files at random, and read them: the errors are ours, soon, and in little memory.

``python tests/_support/fuzz_readers.py`` (``make fuzz``) does so a million times and writes how
often and how long to ``docs/benchmarks/fuzzing.json``; with atheris installed it also lets
coverage guide the damage of what we parse ourselves. A file that does harm is left in
``tests/_support/corpus``, whose files ``test_fuzzed_readers.py`` reads for ever after.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "benchmarks"))

import timing  # noqa: E402

CORPUS = HERE / "corpus"
# As many as a night has time for. The model file is what strangers will send.
COUNTS = {
    ".heatsketch": 1_000_000,
    ".npy": 200_000,
    ".parquet": 200_000,
    ".feather": 60_000,
    ".npz": 60_000,
    ".csv": 60_000,
    ".csv.gz": 30_000,
    ".edges": 30_000,
    ".mtx": 30_000,
    ".zarr": 40_000,
}  # and not .h5ad: reading an attribute of some damaged files, HDF5 does not return
GUIDED = 100_000  # of each that atheris damages
OURS = (".heatsketch", ".csv", ".edges", ".mtx")  # parsed by us, at least in part
USUAL = 5.0, 64 * 2**20  # seconds, and bytes of memory beyond the file
# Libraries unpack these, and may take more memory before they raise; see SECURITY.md.
PACKED = (".npz", ".csv.gz", ".parquet", ".feather", ".zarr")
LIMITS = dict.fromkeys(COUNTS, USUAL) | dict.fromkeys(PACKED, (10.0, 2**32))
NUMBERS = [b"", b"\0", b"\xff", b"\x7f", b"\xff" * 4, b"\xff\xff\xff\x7f", b"\xff" * 7 + b"\x7f"]
WORDS = [b"nan", b"-1", b"1e999", b'"', b"\n", b",", b"99999999999", b"{", b"[", b"\\", b"%", b"#"]


# --- good files ---------------------------------------------------------------------------


def good_file(folder, extension):
    """Write a small one, which has most of what the format has."""
    from heatsketch import HeatSketch
    from heatsketch.io import Block, table_writer

    path = Path(folder, f"a{extension}")
    X = np.random.default_rng(0).normal(size=(20, 2))
    if extension == ".heatsketch":
        HeatSketch(2, n_neighbors=4, weights="gaussian").fit(X).save(path)
    elif extension == ".edges":
        path.write_text("# a ring\n" + "".join(f"n{i} n{(i + 1) % 9} 1.5\n" for i in range(9)))
    elif extension == ".mtx":
        banner = "%%MatrixMarket matrix coordinate real symmetric\n% a path\n9 9 17\n"
        lines = [f"{i + 1} {j + 1} 0.5\n" for i in range(9) for j in range(max(0, i - 1), i + 1)]
        path.write_text(banner + "".join(lines))
    elif extension == ".npz":
        np.savez(path, X=X, who=[f"r{i}" for i in range(20)], kind=np.arange(20))
    else:
        carries = {} if extension == ".npy" else {"ids": "who", "labels": ["kind"]}
        with table_writer(path, ["x", "y"], **carries) as writer:
            ids = [f"r{i}" for i in range(20)] if carries else None
            writer.append(Block(X, ids, {"kind": np.arange(20)} if carries else {}))
    return path


def read(path):
    """Read a file of any of our formats, as who does not know better would."""
    from heatsketch import load
    from heatsketch.io import GRAPH_EXTENSIONS, open_table, read_graph

    name = path.name
    if name.endswith(".heatsketch"):
        return load(path)
    if name.endswith(GRAPH_EXTENSIONS):
        return read_graph(path)
    options = {} if name.endswith(".npy") else {"ids": "who", "labels": ["kind"]}
    return open_table(path, **options).read()


# --- damage -------------------------------------------------------------------------------


def damaged(data, rng):
    """Return some bytes changed in one to three ways."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        place, length = int(rng.integers(len(data) + 1)), int(rng.integers(1, 17))
        kind = rng.integers(7)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[place : place + length] = rng.bytes(length)
        elif kind == 2:
            del data[place : place + length]
        elif kind == 3:
            some = [*NUMBERS, *WORDS][rng.integers(len(NUMBERS) + len(WORDS))]
            data[place : place + (len(some) if rng.integers(2) else 0)] = some
        elif kind == 4:
            source = int(rng.integers(len(data) + 1))
            data[place:place] = data[source : source + length]
        elif kind == 5:
            del data[place:]
        else:
            data[place : place + length] = bytes(min(length, len(data) - place))
    return bytes(data)


def fuzz(extension, count, seed=0):
    """Damage a file as often as that; return what came of it, or raise what must not come."""
    from heatsketch.exceptions import HeatSketchError

    rng = np.random.default_rng([seed, len(extension)])
    most_seconds, most_bytes = LIMITS[extension]
    with tempfile.TemporaryDirectory(dir=memory_disk()) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = good_file(folder, extension)
        files = [path] if path.is_file() else sorted(f for f in path.rglob("*") if f.is_file())
        wholes = [file.read_bytes() for file in files]
        read(path)
        forget_peak()
        start, before, n_rejected, slowest = time.perf_counter(), peak(), 0, 0.0
        for _ in range(count):
            which = int(rng.integers(len(files)))
            data = damaged(wholes[which], rng)
            files[which].write_bytes(data)
            began = time.perf_counter()
            try:
                read(path)
            except HeatSketchError:
                n_rejected += 1
            except BaseException:
                keep(data, extension, files[which].relative_to(path) if path.is_dir() else None)
                raise
            slowest = max(slowest, time.perf_counter() - began)
            if slowest > most_seconds:
                keep(data, extension)
                raise AssertionError(f"{extension}: {slowest:.1f} s for one file")
            files[which].write_bytes(wholes[which])
        taken = peak() - before
        assert taken <= most_bytes + 2 * max(map(len, wholes)), f"{extension}: {taken} bytes"
    seconds = time.perf_counter() - start
    return {
        "cases": count,
        "seconds": round(seconds, 1),
        "rejected": n_rejected,
        "slowest": round(slowest, 3),
        "bytes": taken,
    }


def keep(data, extension, part=None):
    """Leave what did harm in the corpus."""
    if part is None:
        CORPUS.mkdir(exist_ok=True)
        (CORPUS / f"{hashlib.sha256(data).hexdigest()[:16]}{extension}").write_bytes(data)
    else:
        print(f"{extension}: {part} of it as {data!r}", file=sys.stderr)


def memory_disk():
    """Return a folder in memory where there is one, since disks are slow."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def forget_peak():
    """Have the system count the peak from now on, so that formats can share a process."""
    Path("/proc/self/clear_refs").write_text("5")


def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024


# --- guided by coverage -------------------------------------------------------------------


def guided(extension, count):
    """Let atheris find the damage; it ends the process, and says how many runs it had."""
    import atheris

    with atheris.instrument_imports(include=["heatsketch"]):
        importlib.import_module("heatsketch.io")
        importlib.import_module("heatsketch._load")
    from heatsketch.exceptions import HeatSketchError

    folder = tempfile.mkdtemp(dir=memory_disk())
    seeds = Path(folder, "seeds")
    seeds.mkdir()
    good = good_file(seeds, extension)
    path = Path(folder, f"case{extension}")

    def one(data):
        path.write_bytes(data)
        with suppress(HeatSketchError):
            read(path)

    read(good)
    warnings.simplefilter("ignore")
    flags = [f"-runs={count}", "-timeout=10", "-rss_limit_mb=2048", f"-artifact_prefix={CORPUS}/"]
    atheris.Setup([sys.argv[0], *flags, str(seeds)], one)
    atheris.Fuzz()


# --- report -------------------------------------------------------------------------------


def in_a_process(*arguments):
    """Run this file, so that a crash is seen; return what it printed."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{arguments} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout or done.stderr


def damage(extensions, share, seed=0):
    """Fuzz these formats in one process, and return what came of each."""
    words = in_a_process("--share", share, "--seed", seed, "--damage", *extensions)
    return {line["format"]: line for line in map(json.loads, words.splitlines())}


def report(share, seed):
    """Fuzz everything in processes of its own; parts that are in the file are not run again."""
    found = {"share": share, "seed": seed, "damaged": {}, "guided": {}}
    before = timing.read("fuzzing", found)
    if (before["share"], before["seed"]) == (share, seed):
        found = before
    for extension in [name for name in COUNTS if name not in found["damaged"]]:
        found["damaged"] |= damage([extension], share, seed)
        write(found)
    if not importlib.util.find_spec("atheris"):
        print("without atheris, which is not installed")
        return
    for extension in [name for name in OURS if name not in found["guided"]]:
        start = time.perf_counter()
        words = in_a_process("--guide", extension, "--share", share)
        runs = int(re.search(r"Done (\d+) runs", words)[1])
        covered = int(re.findall(r"cov: (\d+)", words)[-1])
        seconds = round(time.perf_counter() - start, 1)
        found["guided"][extension] = {"cases": runs, "seconds": seconds, "edges": covered}
        write(found)


def write(found):
    """Write what was found so far, and the sums of it."""
    parts = [*found["damaged"].values(), *found["guided"].values()]
    found["cases"] = sum(part["cases"] for part in parts)
    found["seconds"] = round(sum(part["seconds"] for part in parts), 1)
    timing.write("fuzzing", found, quiet=True)
    print(f"{found['cases']} files in {found['seconds']} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the counts of a night")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--damage", choices=COUNTS, nargs="+", help="only these, without a report")
    parser.add_argument("--guide", choices=OURS, help="only this one, by atheris")
    given = parser.parse_args()
    if given.damage:
        for extension in given.damage:
            count = max(50, int(given.share * COUNTS[extension]))
            print(json.dumps({"format": extension, **fuzz(extension, count, given.seed)}))
    elif given.guide:
        guided(given.guide, int(given.share * GUIDED))
    else:
        report(given.share, given.seed)


if __name__ == "__main__":
    main()
