"""Tables are read and written without ever being in memory as a whole, as the system measures."""

import os
import subprocess
import sys

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MIB = 2**20

# What every child process begins with. Its limit is on addresses, which nothing can evade, and
# the peak that the system has seen is held against what it was after a small table.
PREAMBLE = """
import resource, sys
import numpy as np
from pathlib import Path
from heatsketch.io import Block, open_table, table_writer

path = Path(sys.argv[1])
small = path.with_name(path.name.replace("a.", "small."))

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

def write(path, n_blocks):
    bits = np.random.default_rng(0).integers(0, 2**24, (2048, 512), dtype=np.uint32)
    with table_writer(path, [f"x{i}" for i in range(512)], dtype="float32") as writer:
        for number in range(n_blocks):
            writer.append(Block((bits + np.uint32(number)).astype(np.float32)))

def total(path, rows=2048):
    sums = [float(block.X.sum(dtype=float)) for block in open_table(path).blocks(rows)]
    return sum(sums)

def limit(more):
    resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + more, resource.RLIM_INFINITY))
    return status("VmHWM")
"""


def run(code, *arguments):
    """Return the numbers that a program prints."""
    environment = os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        # Freed blocks go back to the system. Without this glibc keeps 30 to 70 MiB of them, by
        # chance, while pyarrow holds 8.
        "MALLOC_MMAP_THRESHOLD_": "131072",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PREAMBLE + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [float(number) for number in done.stdout.split()]


@pytest.mark.untraced
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux to count")
class TestMemory:
    def test_four_gibibytes_are_read_in_a_few_mebibytes(self, tmp_path):
        """Of a file with a hole in it, so that no disk needs space for it."""
        path = tmp_path / "a.npy"
        shape = (2**20 * 4, 256)
        with path.open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            offset = file.tell()
        os.truncate(path, offset + 4096 * MIB)
        with path.open("r+b") as file:
            for place in (0, 3 * 2**30, 4096 * MIB - 4):
                file.seek(offset + place)
                file.write(np.float32(1).tobytes())
        code = """
before = limit(300 * 2**20)
table = open_table(path)
ones = n_rows = 0
for block in table.blocks(65536):
    ones += float(block.X.sum())
    n_rows += len(block.X)
print(ones, n_rows, status("VmHWM") - before)
"""
        ones, n_rows, grown = run(code, path)
        assert (ones, n_rows) == (3, shape[0])
        assert grown < 200 * MIB

    @pytest.mark.parametrize(
        "extension",
        [".npy", ".parquet", ".feather", pytest.param(".zarr", marks=pytest.mark.nightly)],
    )
    def test_128_mebibytes_are_written_and_read_in_few(self, tmp_path, extension):
        code = """
write(small, 2)
total(small)
before = limit(256 * 2**20)
write(path, 32)
print(total(path), status("VmHWM") - before)
"""
        total, grown = run(code, tmp_path / f"a{extension}")
        bits = np.random.default_rng(0).integers(0, 2**24, (2048, 512), dtype=np.uint32)
        expected = 32 * bits.sum(dtype=float) + bits.size * sum(range(32))
        assert total == pytest.approx(expected, rel=1e-9)
        assert grown < 48 * MIB

    def test_packed_text_is_written_and_read_row_by_row(self, tmp_path):
        code = """
def write(path, n_rows):
    with table_writer(path, [f"x{i}" for i in range(50)]) as writer:
        for start in range(0, n_rows, 1000):
            writer.append(Block(np.full((min(1000, n_rows - start), 50), 1 / 3)))
write(small, 3000)
total(small, 1000)
before = limit(256 * 2**20)
write(path, 80_000)
print(total(path, 1000), status("VmHWM") - before)
"""
        total, grown = run(code, tmp_path / "a.csv.gz")
        assert total == pytest.approx(80_000 * 50 / 3)
        assert grown < 24 * MIB  # the numbers take 31, and the text 76

    def test_a_row_group_is_never_whole_in_memory(self, tmp_path):
        """As most tools write it: a million rows in one group."""
        columns = np.random.default_rng(0).random((32, 1_000_000), dtype=np.float32)
        table = pa.table({f"x{i}": column for i, column in enumerate(columns)})
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=2**20, compression="none")
        pq.write_table(table[:50_000], tmp_path / "small.parquet")
        code = """
total(small)
before = limit(512 * 2**20)
print(total(path), status("VmHWM") - before)
"""
        total, grown = run(code, tmp_path / "a.parquet")
        assert total == pytest.approx(columns.sum(dtype=float))
        assert grown < 60 * MIB  # of 122

    def test_a_sparse_matrix_is_read_by_rows(self, tmp_path):
        for name, n_rows in (("small.h5ad", 500), ("a.h5ad", 10_000)):
            write_sparse(tmp_path / name, n_rows)
        code = """
total(small)
before = limit(512 * 2**20)
print(total(path, 500), status("VmHWM") - before)
"""
        total, grown = run(code, tmp_path / "a.h5ad")
        assert total == 10_000 * 1000
        assert grown < 20 * MIB  # of 76


def write_sparse(path, n_rows, n_columns=2000, per_row=1000):
    """A matrix of ones in rows, as anndata stores it."""
    indices = np.tile(np.arange(per_row, dtype=np.int32), n_rows)
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:
        for name, length in (("obs", n_rows), ("var", n_columns)):
            frame = file.create_group(name)
            frame.attrs.update({"_index": "_index", "column-order": np.array([], dtype="S1")})
            frame.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0"})
            names = frame.create_dataset("_index", data=np.arange(length).astype("S8"), dtype=text)
            names.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
        X = file.create_group("X")
        X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
        X.attrs["shape"] = (n_rows, n_columns)
        X["data"] = np.ones(len(indices), dtype=np.float32)
        X["indices"] = indices
        X["indptr"] = np.arange(0, len(indices) + 1, per_row)
