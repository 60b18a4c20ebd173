"""Files of rows: what goes in comes out, whatever wrote it and whatever reads it."""

import re
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import anndata
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from heatsketch.exceptions import FileFormatError
from heatsketch.io import (
    TABLE_EXTENSIONS,
    Block,
    open_table,
    read_graph,
    table_writer,
)

IS_TEXT = {".csv", ".csv.gz", ".tsv", ".tsv.gz"}
EMBEDDING = {".h5ad": {"key": "X_heatsketch"}}
HEADER = {extension: {"header": True} for extension in IS_TEXT}

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
STORED_BECOMES = (
    "f4 f4, f8 f8, >f4 f4, >i4 f8, f2 f4, u1 f4, ? f4, i2 f4, u2 f4, i4 f8, i8 f8, g f8"
)
kinds = {
    "text": text,
    "gaps": st.none() | text,
    "int": st.integers(-(2**63), 2**63 - 1),
    "uint": st.integers(0, 2**64 - 1),
    "bool": st.booleans(),
    "float": st.floats(),
}
dtypes = {"int": np.int64, "uint": np.uint64, "bool": bool, "float": float}


@st.composite
def tables(draw):
    """Rows of numbers with names, ids and labels, and how to cut them into blocks."""
    n_rows, n_columns = draw(st.integers(0, 7)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int64]))
    elements = st.integers(-(2**53), 2**53) if dtype is np.int64 else st.floats(width=32)
    X = draw(hnp.arrays(dtype, (n_rows, n_columns), elements=elements))
    safe = text.map(lambda name: name.replace("/", "|")).filter(
        lambda name: name not in ("X", "names", "_index", "", ".", "..")
    )
    names = draw(st.lists(safe, min_size=n_columns + 3, max_size=n_columns + 3, unique=True))

    def column(kind):
        values = draw(st.lists(kinds[kind], min_size=n_rows, max_size=n_rows))
        return np.array([None, *values], dtype=object)[1:].astype(dtypes.get(kind, object))

    ids = column(draw(st.sampled_from(["text", "int", "uint"])))
    labels = {name: column(draw(st.sampled_from(list(kinds)))) for name in names[n_columns + 1 :]}
    return X, names[:n_columns], names[n_columns], ids, labels


def written(folder, extension, table, rows):
    X, names, id_name, ids, labels = table
    path = Path(folder, f"tàble{extension}")
    declared = {} if extension == ".npy" else {"ids": id_name, "labels": list(labels)}
    with table_writer(path, names, dtype=X.dtype, **declared) as writer:
        for start in range(0, len(X), rows):
            part = slice(start, start + rows)
            carried = {name: values[part] for name, values in labels.items()}
            writer.append(Block(X[part], ids[part], carried) if declared else Block(X[part]))
    return path


def as_kept(values, extension, *, in_text=False):
    """What a format makes of ids or labels."""
    if len(values) == 0:
        return []
    if extension in IS_TEXT:
        return ["" if value is None else str(value) for value in values.tolist()]
    if in_text:
        return [str(value) for value in values]
    if extension in (".npz", ".zarr"):
        return ["" if value is None else value for value in values.tolist()]
    return values.tolist()


@pytest.mark.parametrize("extension", TABLE_EXTENSIONS)
@settings(max_examples=30)
@given(table=tables(), rows_out=st.integers(1, 8), rows_in=st.integers(1, 8))
def test_what_is_written_is_read(extension, table, rows_out, rows_in):
    X, names, id_name, ids, labels = table
    with TemporaryDirectory() as folder:
        path = written(folder, extension, table, rows_out)
        options = EMBEDDING.get(extension, {}) | HEADER.get(extension, {})
        if extension != ".npy":
            options |= {"labels": list(labels)}
            options |= {} if extension == ".h5ad" else {"ids": id_name}
        found = open_table(path, **options)
        whole, blocks = found.read(), list(found.blocks(rows_in))
    assert found.n_rows == len(X)
    if extension not in (".npy", ".h5ad"):
        assert found.names == tuple(names)
    assert found.dtype == (np.float64 if extension in IS_TEXT or X.dtype == int else X.dtype)
    assert whole.X.dtype == found.dtype
    np.testing.assert_array_equal(whole.X, X)
    assert all(len(block.X) <= rows_in for block in blocks)
    np.testing.assert_array_equal(np.concatenate([whole.X[:0], *(b.X for b in blocks)]), X)
    if extension != ".npy":
        kept = as_kept(ids, extension, in_text=extension == ".h5ad")
        assert whole.ids.tolist() == kept
        assert [name for block in blocks for name in block.ids.tolist()] == kept
        for name, values in labels.items():
            assert repr(whole.labels[name].tolist()) == repr(as_kept(values, extension))


@pytest.fixture
def example(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)).astype(np.float32)
    ids = np.array([f"row {i}" for i in range(50)], dtype=object)
    labels = {"kind": np.array(["a", "b"] * 25, dtype=object), "age": np.arange(50)}

    def write(extension):
        return written(tmp_path, extension, (X, ["x", "y", "z"], "who", ids, labels), 20)

    return X, ids, labels, write


@pytest.mark.parametrize("extension", TABLE_EXTENSIONS)
def test_labels_can_be_had_without_the_numbers(example, extension):
    _, _, labels, write = example
    carried = {} if extension == ".npy" else {"labels": ["kind"]}
    options = HEADER.get(extension, {}) | EMBEDDING.get(extension, {}) | carried
    block = open_table(write(extension), columns=(), **options).read()
    assert block.X.shape == (50, 0)
    assert not carried or block.labels["kind"].tolist() == labels["kind"].tolist()


def test_numbers_in_columns_can_be_left_out(tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(np.ones((5, 3))))
    assert open_table(tmp_path / "x.npy", columns=()).read().X.shape == (5, 0)


# --- others read ours ----------------------------------------


def test_numpy_reads_ours(example):
    X, ids, labels, write = example
    np.testing.assert_array_equal(np.load(write(".npy"), mmap_mode="r"), X)
    with np.load(write(".npz")) as archive:
        np.testing.assert_array_equal(archive["X"], X)
        assert archive["names"].tolist() == ["x", "y", "z"]
        assert archive["who"].tolist() == ids.tolist()
        assert archive["age"].tolist() == labels["age"].tolist()


@pytest.mark.parametrize("extension", [".csv", ".tsv.gz", ".parquet"])
def test_pandas_reads_ours(example, extension):
    X, ids, labels, write = example
    path = write(extension)
    if extension == ".parquet":
        frame = pd.read_parquet(path)
    else:
        separator = "," if extension == ".csv" else "\t"
        frame = pd.read_csv(path, sep=separator, float_precision="round_trip")
    assert list(frame) == ["who", "x", "y", "z", "kind", "age"]
    np.testing.assert_array_equal(frame[["x", "y", "z"]].to_numpy(), X)
    assert frame["who"].tolist() == ids.tolist()
    assert frame["age"].tolist() == labels["age"].tolist()


def test_zarr_reads_ours(example):
    X, ids, _, write = example
    root = zarr.open_group(write(".zarr"), mode="r")
    np.testing.assert_array_equal(root["X"][:], X)
    kept = root.attrs["heatsketch"]["columns"]
    assert root[kept["who"]][:].tolist() == ids.tolist()
    assert sorted(name for name, _ in root.arrays()) == sorted(["X", *kept.values()])


def test_anndata_reads_ours(example):
    X, ids, labels, write = example
    cells = anndata.read_h5ad(write(".h5ad"))
    np.testing.assert_array_equal(cells.obsm["X_heatsketch"], X)
    assert cells.obs_names.tolist() == ids.tolist()
    assert cells.obs["kind"].tolist() == labels["kind"].tolist()
    assert cells.obs["age"].tolist() == labels["age"].tolist()


# --- we read those of others ----------------------------------------


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(
    ("stored", "becomes"),
    [tuple(pair.split()) for pair in STORED_BECOMES.split(", ")],
)
def test_numbers_become_the_smallest_float_that_holds_them(tmp_path, stored, becomes, order):
    X = np.asarray(np.arange(21).reshape(7, 3) % 2, dtype=stored, order=order)
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "a.npz", X)
    np.savez_compressed(tmp_path / "b.npz", X, y=np.arange(7))
    for name in ("a.npy", "a.npz", "b.npz"):
        table = open_table(tmp_path / name, columns=["x2", "x0"])
        X_read = np.concatenate([block.X for block in table.blocks(2)])
        assert X_read.dtype == table.dtype == np.dtype(becomes)
        assert X_read.flags.c_contiguous
        np.testing.assert_array_equal(X_read, X[:, [2, 0]].astype(float))


def test_npz_carries_arrays_along(tmp_path):
    np.savez(tmp_path / "a.npz", train=np.eye(3), test=np.ones((2, 3)), y=[1, 2, 3])
    table = open_table(tmp_path / "a.npz", key="train", labels=["y"], ids="y")
    assert table.read().labels["y"].tolist() == table.read().ids.tolist() == [1, 2, 3]
    with pytest.raises(FileFormatError, match=r"2 of its arrays have two axes.*key="):
        open_table(tmp_path / "a.npz")
    with pytest.raises(FileFormatError, match=r"shape \(3,\), not \(2,\)"):
        open_table(tmp_path / "a.npz", key="test", labels=["y"])


def test_csv_of_others(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('\ufeffname,a,b\r\n"Smith, J\n",1,\r\n\r\n007,-2e3,NaN\r\n')
    block = open_table(path, ids="name").read()
    assert block.ids.tolist() == ["Smith, J\n", "007"]
    np.testing.assert_array_equal(block.X, [[1, np.nan], [-2e3, np.nan]])
    with pytest.raises(FileFormatError, match=r"column 'name' does not hold numbers; pass it"):
        open_table(path)


@pytest.mark.parametrize("row", [0, 99, 100, 101, 150])
@pytest.mark.parametrize("field", ["2x", "1_2", "1_2.5", "١٢", "+-nan"])
@pytest.mark.parametrize("beside", ["1", ""])
def test_no_number_is_none_in_every_row(tmp_path, row, field, beside):
    """Not only in those that are looked at first, and beside a gap as well."""
    lines = ["a_1,b,n", *["1,2,x_1"] * row, f"{beside},{field},x_2", "1,2,é"]
    (tmp_path / "a.csv").write_text("\n".join(lines), encoding="utf-8")
    message = rf"row {row} of column 'b' is '{re.escape(field)}', which is no number; correct it"
    seen_first = r"column 'b' does not hold numbers; pass it through"
    with pytest.raises(FileFormatError, match=rf"{message}|{seen_first}"):
        open_table(tmp_path / "a.csv", labels=["n"]).read()
    assert open_table(tmp_path / "a.csv", labels=["n", "b"]).read().labels["b"][row] == field


@pytest.mark.parametrize(("name", "other"), [("a.csv", ";"), ("a.csv", r"\t"), ("a.tsv", ",")])
def test_other_separators_are_named(tmp_path, name, other):
    mark = "\t" if other == r"\t" else other
    (tmp_path / name).write_text(f"x{mark}y\n1{mark}2\n")
    with pytest.raises(FileFormatError, match=rf"has '{re.escape(other)}' where"):
        open_table(tmp_path / name)


def test_all_columns_of_text_are_named_at_once(tmp_path):
    (tmp_path / "a.csv").write_text("who,kind,x\nann,a,1\n")
    with pytest.raises(FileFormatError, match=r"labels=\['who', 'kind'\], or use ids='who'"):
        open_table(tmp_path / "a.csv")
    names = [f"t{i}" for i in range(20)]
    (tmp_path / "b.csv").write_text(",".join([*names, "x"]) + "\n" + "a," * 20 + "1\n")
    with pytest.raises(FileFormatError, match=r"choose others, for instance columns=\['x'\]"):
        open_table(tmp_path / "b.csv")


def test_a_first_line_of_numbers_is_asked_about(tmp_path):
    (tmp_path / "a.csv").write_text("0,1\n5,6\n")
    with pytest.raises(FileFormatError, match="may be names or numbers; pass header=True"):
        open_table(tmp_path / "a.csv")
    assert open_table(tmp_path / "a.csv", header=True).names == ("0", "1")
    assert open_table(tmp_path / "a.csv", header=False).read().X.tolist() == [[0, 1], [5, 6]]
    assert open_table(tmp_path / "a.csv", header=False).names == ("x0", "x1")


def test_parquet_of_others(tmp_path):
    frame = pa.table(
        {
            "small": pa.array([1, 2, None], pa.int16()),
            "flag": pa.array([True, None, False]),
            "half": pa.array(np.array([1, 2, 3], dtype="f2")),
            "money": pa.array([Decimal("1.50"), None, Decimal(2)]),
            "large": pa.array([2**60, 1, 2]),
            "kind": pa.array(["a", None, "b"]).dictionary_encode(),
            "born": pa.array([0, 1, None], pa.date32()),
            "count": pa.array([1, None, 3]),
        }
    )
    (tmp_path / "parts").mkdir()
    for part in range(2):
        pq.write_table(frame, tmp_path / "parts" / f"part-{part}.parquet")
    (tmp_path / "parts" / "_SUCCESS").write_text("")
    numbers = ["small", "flag", "half", "money", "large"]
    carried = ["kind", "born", "count"]
    table = open_table(tmp_path / "parts", columns=numbers, labels=carried)
    assert (table.n_rows, table.dtype) == (6, np.float64)
    X, _, labels = table.read()
    nan = np.nan
    once = [[1, 1, 1, 1.5, 2**60], [2, nan, 2, nan, 1], [nan, 0, 3, 2, 2]]
    np.testing.assert_array_equal(X, once + once)
    assert labels["kind"].tolist() == ["a", None, "b"] * 2
    assert labels["born"].tolist() == ["1970-01-01", "1970-01-02", None] * 2
    np.testing.assert_array_equal(labels["count"], [1, nan, 3] * 2)
    assert open_table(tmp_path / "parts", columns=numbers[:3]).dtype == np.float32
    assert open_table(tmp_path / "parts", columns=numbers, labels=["count"]).dtype == np.float64
    with pytest.raises(FileFormatError, match="row 1 has no id"):
        open_table(tmp_path / "parts", columns=numbers, ids="kind").read()


MOMENT, LENGTH = "2020-01-02 03:04:05", "1 day, 0:00:05"
NS = 1_577_934_245_000_000_000, 86_405_000_000_000
CARRIED = {
    "s": (pa.timestamp("s"), NS[0] // 10**9, MOMENT),
    "ms": (pa.timestamp("ms"), NS[0] // 10**6 + 120, f"{MOMENT}.120000"),
    "us": (pa.timestamp("us"), NS[0] // 10**3, MOMENT),
    "ns": (pa.timestamp("ns"), NS[0], MOMENT),
    "ns, finer": (pa.timestamp("ns"), NS[0] + 7, f"{MOMENT}.000000007"),
    "ns, not so fine": (pa.timestamp("ns"), NS[0] + 1_000, f"{MOMENT}.000001"),
    "before 1970": (pa.timestamp("ns"), -1, "1969-12-31 23:59:59.999999999"),
    "zone": (pa.timestamp("ns", "Europe/Berlin"), NS[0], f"{MOMENT}+00:00"),
    "zone, us": (pa.timestamp("us", "UTC"), NS[0] // 10**3, f"{MOMENT}+00:00"),
    "length": (pa.duration("ns"), NS[1], LENGTH),
    "length, finer": (pa.duration("ns"), NS[1] + 7, f"{LENGTH}.000000007"),
    "length, us": (pa.duration("us"), NS[1] // 10**3, LENGTH),
    "no length": (pa.duration("ns"), 0, "0:00:00"),
    "backwards": (pa.duration("ns"), -1, "-1 day, 23:59:59.999999999"),
    "time": (pa.time64("us"), 1, "00:00:00.000001"),
    "day": (pa.date32(), 1, "1970-01-02"),
    "decimal": (pa.decimal128(5, 2), Decimal("1.50"), "1.50"),
    "float": (pa.float32(), 1.5, 1.5),
    "int": (pa.int64(), 3, 3.0),
    "bytes": (pa.binary(), b"a", "a"),
}


@pytest.mark.parametrize("name", CARRIED)
def test_a_value_reads_alike_in_every_block(tmp_path, name):
    """Whether another one near it is missing or not."""
    kind, value, wanted = CARRIED[name]
    column = pa.array([value, value, value, None], kind)
    pq.write_table(pa.table({"x": np.zeros(4), "label": column}), tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet", labels=["label"], columns=["x"])
    blocks = [block.labels["label"].tolist() for block in table.blocks(2)]
    assert [*blocks[0], blocks[1][0]] == [wanted] * 3
    assert blocks[1][1] is None or np.isnan(blocks[1][1])


def test_moments_of_numpy_read_as_those_of_arrow(tmp_path):
    names = [name for name in CARRIED if name[0] in "smunlb" and name != "bytes"]
    columns = {name: pa.array([CARRIED[name][1], None], CARRIED[name][0]) for name in names}
    arrays = {name: column.to_numpy(zero_copy_only=False) for name, column in columns.items()}
    np.savez(tmp_path / "a.npz", X=np.zeros((2, 1)), **arrays)
    labels = open_table(tmp_path / "a.npz", key="X", labels=names).read().labels
    for name in names:
        assert labels[name].tolist() == [CARRIED[name][2], None]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.timestamp("ns"), pa.string()])
def test_a_row_without_an_id_is_rejected(tmp_path, kind):
    column = pa.array([1, 2, None]).cast(kind)
    pq.write_table(pa.table({"x": np.zeros(3), "id": column}), tmp_path / "a.parquet")
    with pytest.raises(FileFormatError, match="row 2 has no id; fill it in"):
        open_table(tmp_path / "a.parquet", ids="id").read()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_of_others(tmp_path, zarr_format):
    X = np.arange(35, dtype="u1").reshape(7, 5)
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format)
    options = {"config": {"write_empty_chunks": True}}
    root.create_array("deep/X", data=X, chunks=(2, 3), **options)
    root.create_array("y", data=np.arange(7), **options)
    (tmp_path / "a.zarr" / "README").write_text("not of zarr")
    table = open_table(tmp_path / "a.zarr", labels=["y"], columns=["x4", "x1"])
    assert table.dtype == np.float32
    for rows in (1, 2, 3, 5, 100):
        blocks = list(table.blocks(rows))
        np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), X[:, [4, 1]])
        assert np.concatenate([b.labels["y"] for b in blocks]).tolist() == list(range(7))
    alone = zarr.create_array(
        tmp_path / "b.zarr", data=X, chunks=(2, 5), zarr_format=zarr_format, **options
    )
    assert alone.shape == open_table(tmp_path / "b.zarr").read().X.shape


def test_zarr_in_shards(tmp_path):
    X = np.arange(35.0).reshape(7, 5)
    zarr.create_array(tmp_path / "a.zarr", data=X, chunks=(1, 5), shards=(4, 5))
    np.testing.assert_array_equal(open_table(tmp_path / "a.zarr").read().X, X)
    (tmp_path / "a.zarr" / "c" / "1" / "0").unlink()
    with pytest.raises(FileFormatError, match="chunk 'c/1/0' is missing"):
        open_table(tmp_path / "a.zarr")


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_h5ad_of_others(tmp_path, kind):
    X = (np.arange(28, dtype=np.float32).reshape(7, 4) % 3).astype(np.float32)
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(["a", "b", None, "a", "b", "a", "a"]),
            "age": np.arange(7),
            "maybe": pd.array([1, None, 3, 4, 5, 6, 7], dtype="Int64"),
        },
        index=[f"cell{i}" for i in range(7)],
    )
    cells = anndata.AnnData(kind(X), obs=obs, var=pd.DataFrame(index=list("abcd")))
    cells.obsm["X_pca"] = X[:, :2].astype(float)
    cells.layers["twice"] = kind(2 * X)
    cells.write_h5ad(tmp_path / "a.h5ad")
    table = open_table(tmp_path / "a.h5ad", labels=["kind", "age", "maybe"], columns=["d", "a"])
    assert (table.names, table.is_sparse, table.dtype) == (("d", "a"), kind is not np.asarray, "f4")
    whole = table.read()
    dense = whole.X.toarray() if table.is_sparse else whole.X
    np.testing.assert_array_equal(dense, X[:, [3, 0]])
    assert whole.ids.tolist() == obs.index.tolist()
    assert whole.labels["kind"].tolist() == ["a", "b", None, "a", "b", "a", "a"]
    assert whole.labels["age"].tolist() == list(range(7))
    assert [len(block.ids) for block in table.blocks(3)] == [3, 3, 1]
    pca = open_table(tmp_path / "a.h5ad", key="X_pca", ids="age")
    assert (pca.names, pca.dtype) == (("X_pca_0", "X_pca_1"), np.float64)
    assert pca.read().ids.tolist() == list(range(7))
    twice = open_table(tmp_path / "a.h5ad", key="layers/twice").read().X
    np.testing.assert_array_equal(twice.sum(axis=0), 2 * X.sum(axis=0))


# --- graphs ----------------------------------------


def test_edge_lists(tmp_path):
    path = tmp_path / "a.edges"
    path.write_text("# comment\n% another\n10 2 0.5\n2\t10\t0.5\n2,3,1e0\n3 3 7\n")
    affinity, ids = read_graph(path)
    assert ids.tolist() == [2, 3, 10]
    assert affinity.toarray().tolist() == [[0, 1, 0.5], [1, 7, 0], [0.5, 0, 0]]
    (tmp_path / "b.EDGELIST").write_text("007 bert\nbert 7\n")
    affinity, ids = read_graph(tmp_path / "b.EDGELIST")
    assert ids.tolist() == ["007", "7", "bert"]
    assert affinity.toarray().tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_matrix_market(tmp_path, symmetry):
    from scipy.io import mmwrite

    X = sparse.random(20, 20, 0.3, random_state=0)
    X = sparse.coo_matrix(X + X.T + sparse.eye(20))
    mmwrite(tmp_path / "a.mtx", X, symmetry=symmetry)
    affinity, ids = read_graph(tmp_path / "a.mtx")
    np.testing.assert_allclose(affinity.toarray(), X.toarray(), rtol=1e-14)
    assert ids.tolist() == list(range(20))
    mmwrite(tmp_path / "dense.mtx", X.toarray(), symmetry=symmetry)
    np.testing.assert_allclose(read_graph(tmp_path / "dense.mtx").affinity.toarray(), X.toarray())


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20))
def test_an_edge_counts_once_whichever_way_it_is_listed(edges):
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.edges")
        path.write_text("\n".join(f"{i} {j}" for i, j in edges))
        affinity, ids = read_graph(path)
    dense = affinity.toarray()
    np.testing.assert_array_equal(dense, dense.T)
    found = {(ids[i], ids[j]) for i, j in zip(*dense.nonzero(), strict=True)}
    assert found == {pair for i, j in edges for pair in ((i, j), (j, i))}
    assert set(dense[dense != 0]) == {1.0}


@pytest.mark.parametrize("name", ["edges.csv", "edges.tsv.gz", "edges.parquet"])
def test_edges_in_a_table_are_those_of_a_list(tmp_path, name):
    edges = pd.DataFrame(
        {"source": [10, 2, 3, 3], "target": [2, 10, 2, 3], "weight": [0.5, 0.5, 1, 7]}
    )
    (tmp_path / "a.edges").write_text(edges.to_csv(sep=" ", index=False, header=False))
    wanted, ids = read_graph(tmp_path / "a.edges")
    for frame, options in (
        (edges, {}),
        (edges.assign(kind="friend")[["target", "source", "kind", "weight"]], {}),
        (edges.set_axis(["a", "b", "c"], axis=1), {}),
        (edges.assign(z=1).set_axis(list("abcz"), axis=1), {"columns": ["b", "a", "c"]}),
    ):
        if name.endswith("parquet"):
            frame.to_parquet(tmp_path / name, index=False)
        else:
            frame.to_csv(tmp_path / name, index=False, sep="\t" if ".tsv" in name else ",")
        affinity, found = read_graph(tmp_path / name, **options)
        assert found.tolist() == ids.tolist() == [2, 3, 10]
        np.testing.assert_array_equal(affinity.toarray(), wanted.toarray())


def test_edges_without_a_header_or_with_a_gap(tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n2,3\n")
    assert read_graph(tmp_path / "a.csv", header=False).ids.tolist() == [1, 2, 3]
    (tmp_path / "b.csv").write_text("source,target\nanna,bert\nbert,\n")
    with pytest.raises(FileFormatError, match="row 1 of column 'target' has no node; fill it in"):
        read_graph(tmp_path / "b.csv")
    pq.write_table(pa.table({"source": [1, 2], "target": [2, None]}), tmp_path / "c.parquet")
    with pytest.raises(FileFormatError, match="row 1 of column 'target' has no node; fill it in"):
        read_graph(tmp_path / "c.parquet")


SPARSE = ["csr", "csc", "coo", "bsr", "dia"]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "?"])
@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("compressed", [True, False])
def test_sparse_matrices_of_scipy(tmp_path, layout, dtype, compressed):
    dense = (np.random.default_rng(0).integers(0, 3, (12, 6)) * (np.arange(6) % 2)).astype(dtype)
    for kind in (sparse.csr_array, sparse.csr_matrix):
        path = tmp_path / f"{kind.__name__}.npz"
        sparse.save_npz(path, kind(dense).asformat(layout), compressed=compressed)
        table = open_table(path)
        assert (table.n_rows, table.names[-1], table.is_sparse) == (12, "x5", True)
        assert table.dtype == (np.float32 if dtype in ("f4", "u1", "?") else np.float64)
        blocks = [block.X for block in table.blocks(5)]
        assert [block.shape[0] for block in blocks] == [5, 5, 2]
        for X in (table.read().X, sparse.vstack(blocks)):
            assert X.dtype == table.dtype
            np.testing.assert_array_equal(X.toarray(), dense)
        some = open_table(path, columns=["x3", "x1"]).read().X
        np.testing.assert_array_equal(some.toarray(), dense[:, [3, 1]])


@pytest.mark.parametrize("layout", SPARSE)
def test_a_sparse_matrix_may_be_a_graph(tmp_path, layout):
    upper = sparse.triu(sparse.random(20, 20, 0.3, random_state=0) + sparse.eye(20))
    whole = upper + sparse.triu(upper, k=1).T
    for name, matrix in (("once", upper), ("both ways", whole)):
        sparse.save_npz(tmp_path / f"{name}.npz", sparse.csr_array(matrix).asformat(layout))
        affinity, ids = read_graph(tmp_path / f"{name}.npz")
        np.testing.assert_array_equal(affinity.toarray(), whole.toarray())
        assert ids.tolist() == list(range(20))


# --- lists of numbers, as embeddings are kept --------------------------------------------------

VECTORS = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
LISTS = {
    "arrow, fixed": lambda path: pq.write_table(
        pa.table({"a": range(7), "e": pa.FixedSizeListArray.from_arrays(VECTORS.ravel(), 3)}), path
    ),
    "arrow, not fixed": lambda path: pq.write_table(
        pa.table({"a": range(7), "e": pa.array(VECTORS.tolist(), pa.list_(pa.float32()))}), path
    ),
    "arrow, row groups": lambda path: pq.write_table(
        pa.table({"a": range(7), "e": pa.array(VECTORS.tolist(), pa.large_list(pa.float32()))}),
        path,
        row_group_size=2,
    ),
    "polars, Array": lambda path: pl.DataFrame(
        {"a": range(7), "e": pl.Series(VECTORS, dtype=pl.Array(pl.Float32, 3))}
    ).write_parquet(path),
    "polars, List": lambda path: pl.DataFrame(
        {"a": range(7), "e": pl.Series(VECTORS.tolist(), dtype=pl.List(pl.Float32))}
    ).write_parquet(path),
    "pandas": lambda path: pd.DataFrame({"a": range(7), "e": list(VECTORS)}).to_parquet(path),
}


@pytest.mark.parametrize("writer", LISTS)
def test_lists_are_columns(tmp_path, writer):
    path = tmp_path / "a.parquet"
    LISTS[writer](path)
    parts = ("e_0", "e_1", "e_2")
    for options, names in (
        ({"ids": "a"}, parts),
        ({"columns": ["e"]}, parts),
        ({"columns": ["e_2", "e_0"]}, ("e_2", "e_0")),
    ):
        table = open_table(path, **options)
        assert (table.names, table.dtype, table.n_rows) == (names, np.float32, 7)
        wanted = VECTORS[:, [parts.index(name) for name in names]]
        np.testing.assert_array_equal(table.read().X, wanted)
        np.testing.assert_array_equal(np.concatenate([b.X for b in table.blocks(2)]), wanted)
    both = open_table(path, columns=["a", "e"])
    assert both.names == ("a", *parts)
    np.testing.assert_array_equal(both.read().X, np.column_stack([range(7), VECTORS]))
    mixed = open_table(path, columns=["e_1", "a", "e_0"]).read().X
    np.testing.assert_array_equal(mixed, np.column_stack([VECTORS[:, 1], range(7), VECTORS[:, 0]]))


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.list_(pa.float64(), 2)], ids=str)
def test_a_list_that_is_missing_is_a_row_of_nan(tmp_path, kind):
    column = pa.array([None, [1, 2], [None, 4], None], kind)
    pq.write_table(pa.table({"e": column}), tmp_path / "a.parquet")
    if pa.types.is_fixed_size_list(kind) and int(pa.__version__.split(".")[0]) < 26:
        with pytest.raises(FileFormatError, match="Expected all lists to be of size=2"):
            open_table(tmp_path / "a.parquet").read()  # which Arrow could not read then
        return
    table = open_table(tmp_path / "a.parquet")
    nan = np.nan
    wanted = [[nan, nan], [1, 2], [nan, 4], [nan, nan]]
    np.testing.assert_array_equal(table.read().X, wanted)
    np.testing.assert_array_equal(np.concatenate([b.X for b in table.blocks(1)]), wanted)
