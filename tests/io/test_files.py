"""Files of rows and graphs: what is written is read, by us and by others."""

from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import anndata
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from scipy.io import mmwrite

from heatsketch.exceptions import FileFormatError
from heatsketch.io import OUTPUT_EXTENSIONS, Block, open_table, read_graph, table_writer

IS_TEXT = {".csv", ".csv.gz", ".tsv", ".tsv.gz"}
HEADER = {extension: {"header": True} for extension in IS_TEXT}

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
text = text | st.sampled_from(["NaT", "nan", "None", "NA"])
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
    """Rows of numbers with names, ids and labels."""
    n_rows, n_columns = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int64]))
    elements = st.integers(-(2**53), 2**53) if dtype is np.int64 else st.floats(width=32)
    X = draw(hnp.arrays(dtype, (n_rows, n_columns), elements=elements))
    names = draw(st.lists(text, min_size=n_columns + 3, max_size=n_columns + 3, unique=True))

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
            beside = {name: values[part] for name, values in labels.items()}
            writer.append(Block(X[part], ids[part], beside) if declared else Block(X[part]))
    return path


def as_stored(values, extension):
    """Return ids or labels as a format stores them."""
    if extension in IS_TEXT and values.dtype == float:
        return [float(value) for value in values]
    if extension in IS_TEXT:
        texts = ["" if value is None else str(value) for value in values.tolist()]
        return [text.lower() for text in texts] if values.dtype == bool else texts
    if extension == ".zarr":
        return ["" if value is None else value for value in values.tolist()]
    return values.tolist()


@pytest.mark.parametrize("extension", OUTPUT_EXTENSIONS)
@settings(max_examples=20)
@given(table=tables(), rows_out=st.integers(1, 8), rows_in=st.integers(1, 8))
def test_table_is_read_as_it_was_written(extension, table, rows_out, rows_in):
    X, names, id_name, ids, labels = table
    with TemporaryDirectory() as folder:
        path = written(folder, extension, table, rows_out)
        options = HEADER.get(extension, {})
        if extension != ".npy":
            options = {**options, "ids": id_name, "labels": list(labels), "columns": names}
        opened = open_table(path, **options)
        whole, blocks = opened.read(), list(opened.blocks(rows_in))
    assert opened.n_rows == len(X)
    assert opened.dtype == (np.float64 if extension in IS_TEXT or X.dtype == int else X.dtype)
    assert whole.X.dtype == opened.dtype
    np.testing.assert_array_equal(whole.X, X)
    assert all(len(block.X) <= rows_in for block in blocks)
    np.testing.assert_array_equal(np.concatenate([whole.X[:0], *(b.X for b in blocks)]), X)
    if extension != ".npy":
        assert whole.ids.tolist() == as_stored(ids, extension)
        assert [name for block in blocks for name in block.ids.tolist()] == whole.ids.tolist()
        for name, values in labels.items():
            read = whole.labels[name].tolist()
            if extension in IS_TEXT and values.dtype == float:
                read = list(map(float, read))
            assert repr(read) == repr(as_stored(values, extension))


@pytest.fixture
def example(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)).astype(np.float32)
    ids = np.array([f"row {i}" for i in range(50)], dtype=object)
    labels = {"kind": np.array(["a", "b"] * 25, dtype=object), "age": np.arange(50)}

    def write(extension):
        return written(tmp_path, extension, (X, ["x", "y", "z"], "who", ids, labels), 20)

    return X, ids, labels, write


# --- others read our files --------------------------------------------------------------------


@pytest.mark.parametrize("extension", [".csv", ".tsv.gz", ".parquet", ".feather"])
def test_pandas_reads_our_files(example, extension):
    X, ids, labels, write = example
    path = write(extension)
    if extension in IS_TEXT:
        separator = "," if extension == ".csv" else "\t"
        frame = pd.read_csv(path, sep=separator, float_precision="round_trip")
    else:
        frame = pd.read_parquet(path) if extension == ".parquet" else pd.read_feather(path)
    assert list(frame) == ["who", "x", "y", "z", "kind", "age"]
    np.testing.assert_array_equal(frame[["x", "y", "z"]].to_numpy(), X)
    assert frame["who"].tolist() == ids.tolist()
    assert frame["age"].tolist() == labels["age"].tolist()


# --- we read the files of others --------------------------------------------------------------


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(
    ("stored", "becomes"), [tuple(pair.split()) for pair in STORED_BECOMES.split(", ")]
)
def test_numbers_become_the_smallest_float_that_holds_them(tmp_path, stored, becomes, order):
    X = np.asarray(np.arange(21).reshape(7, 3) % 2, dtype=stored, order=order)
    np.save(tmp_path / "a.npy", X)
    np.savez_compressed(tmp_path / "b.npz", X, y=np.arange(7))
    for name in ("a.npy", "b.npz"):
        table = open_table(tmp_path / name, columns=["x2", "x0"])
        X_read = np.concatenate([block.X for block in table.blocks(2)])
        assert X_read.dtype == table.dtype == np.dtype(becomes)
        assert X_read.flags.c_contiguous
        np.testing.assert_array_equal(X_read, X[:, [2, 0]].astype(float))


def test_npz_has_labels_in_other_arrays(tmp_path):
    moments = np.array(["2020-01-02", "NaT", "2020-01-03"], dtype="M8[ns]")
    np.savez(tmp_path / "a.npz", train=np.eye(3), test=np.ones((2, 3)), y=[1, 2, 3], t=moments)
    labels = open_table(tmp_path / "a.npz", key="train", labels=["y", "t"], ids="y").read().labels
    assert labels["y"].tolist() == [1, 2, 3]
    assert labels["t"][1] is None and labels["t"][0].startswith("2020-01-02")
    with pytest.raises(FileFormatError, match="key="):
        open_table(tmp_path / "a.npz")
    with pytest.raises(FileFormatError, match="labels='y'"):
        open_table(tmp_path / "a.npz", key="test", labels=["y"])


def test_csv_may_have_quotes_blank_lines_and_gaps(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('\ufeffname,a,b\r\n"Smith, J\n",1,\r\n\r\n007,-2e3,NaN\r\n')
    block = open_table(path, ids="name").read()
    assert block.ids.tolist() == ["Smith, J\n", "007"]
    np.testing.assert_array_equal(block.X, [[1, np.nan], [-2e3, np.nan]])
    with pytest.raises(FileFormatError, match=r"\['name'\]"):
        open_table(path)


@pytest.mark.parametrize("row", [0, 99, 30_000])
@pytest.mark.parametrize("field", ["2x", "1_2", "١٢", "+-nan"])
@pytest.mark.parametrize("beside", ["1", ""])
def test_csv_text_among_numbers_is_rejected(tmp_path, row, field, beside):
    """In rows beyond those from which types are inferred, and beside a gap, too."""
    lines = ["a_1,b,n", *["1,2,x_1_long"] * row, f"{beside},{field},x_2", "1,2,é"]
    (tmp_path / "a.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"a\.csv"):
        open_table(tmp_path / "a.csv", labels=["n"]).read()
    assert open_table(tmp_path / "a.csv", labels=["n", "b"]).read().labels["b"][row] == field


def test_csv_without_names_needs_header(tmp_path):
    (tmp_path / "a.csv").write_text("0,1\n5,6\n")
    with pytest.raises(FileFormatError, match="header=True"):
        open_table(tmp_path / "a.csv")
    assert open_table(tmp_path / "a.csv", header=True).names == ("0", "1")
    assert open_table(tmp_path / "a.csv", header=False).read().X.tolist() == [[0, 1], [5, 6]]
    assert open_table(tmp_path / "a.csv", header=False).names == ("x0", "x1")


FRAME = pa.table(
    {
        "small": pa.array([1, 2, None], pa.int16()),
        "flag": pa.array([True, None, False]),
        "half": pa.array(np.array([1, 2, 3], dtype="f2")),
        "money": pa.array([Decimal("1.50"), None, Decimal(2)]),
        "large": pa.array([2**60, 1, 2]),
        "kind": pa.array(["a", None, "b"]).dictionary_encode(),
        "born": pa.array([0, 1, None], pa.date32()),
        "count": pa.array([1, None, 3]),
        "moment": pa.array([7, 0, None], pa.timestamp("ns")),
    }
)


@pytest.mark.parametrize("writer", [pq.write_table, pf.write_feather])
def test_columns_of_arrow_have_one_type_in_all_blocks(tmp_path, writer):
    extension = "parquet" if writer is pq.write_table else "feather"
    for part in range(2):
        writer(FRAME, str(tmp_path / f"part-{part}.{extension}"))
    (tmp_path / "_SUCCESS").write_text("")
    numbers, beside = FRAME.column_names[:5], FRAME.column_names[5:]
    table = open_table(tmp_path, columns=numbers, labels=beside)
    assert (table.n_rows, table.dtype) == (6, np.float64)
    nan = np.nan
    once = [[1, 1, 1, 1.5, 2**60], [2, nan, 2, nan, 1], [nan, 0, 3, 2, 2]]
    for rows in (1, 2, 10):
        blocks = list(table.blocks(rows))
        np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), once + once)
        labels = {name: [v for b in blocks for v in b.labels[name].tolist()] for name in beside}
        assert labels["kind"] == ["a", None, "b"] * 2
        assert labels["born"] == ["1970-01-01", "1970-01-02", None] * 2
        assert labels["moment"][:2] == [f"1970-01-01 00:00:00.00000000{i}" for i in (7, 0)]
        np.testing.assert_array_equal(labels["count"], [1, nan, 3] * 2)
    assert open_table(tmp_path, columns=numbers[:3]).dtype == np.float32
    with pytest.raises(FileFormatError, match="row 1 "):
        open_table(tmp_path, columns=numbers, ids="kind").read()


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.timestamp("ns"), pa.string()])
def test_row_without_an_id_is_rejected(tmp_path, kind):
    column = pa.array([1, 2, None]).cast(kind)
    pq.write_table(pa.table({"x": np.zeros(3), "id": column}), tmp_path / "a.parquet")
    with pytest.raises(FileFormatError, match="row 2 "):
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
    for rows in (1, 3, 100):
        blocks = list(table.blocks(rows))
        np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), X[:, [4, 1]])
        assert np.concatenate([b.labels["y"] for b in blocks]).tolist() == list(range(7))


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


# --- folders, patterns and URLs ---------------------------------------------------------------


@pytest.mark.parametrize("extension", [".csv", ".parquet", ".feather"])
def test_folder_pattern_and_url_hold_the_same_table(example, tmp_path, extension):
    X, ids, _, write = example
    path = write(extension)
    (tmp_path / "folder").mkdir()
    for part in "ba":
        (tmp_path / "folder" / f"{part}{extension}").write_bytes(path.read_bytes())
    places = [tmp_path / "folder", str(tmp_path / "folder" / f"*{extension}")]
    memory = fsspec.filesystem("memory")
    for part in "ab":
        memory.pipe(f"/tables/{part}{extension}", path.read_bytes())
    places += [f"memory://tables/*{extension}", f"memory://tables/[ab]{extension}"]
    try:
        for place in places:
            block = open_table(place, columns=["x", "y", "z"], ids="who").read()
            np.testing.assert_array_equal(block.X, np.concatenate([X, X]))
            assert block.ids.tolist() == [*ids, *ids]
        one = open_table(f"memory://tables/a{extension}", columns=["x", "y", "z"])
        np.testing.assert_array_equal(one.read().X, X)
    finally:
        memory.rm("/tables", recursive=True)


def test_files_of_a_folder_must_have_the_same_columns(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y,x\n1,2\n")
    with pytest.raises(FileFormatError, match=r"b\.csv"):
        open_table(tmp_path)
    (tmp_path / "b.parquet").write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"b\.parquet"):
        open_table(tmp_path)
    with pytest.raises(FileFormatError, match="none"):
        open_table(tmp_path / "none*.csv")


# --- graphs -----------------------------------------------------------------------------------


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
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_matrix_market(tmp_path, symmetry, field):
    X = sparse.random(20, 20, 0.3, random_state=0)
    X = sparse.coo_matrix(X + X.T + sparse.eye(20))
    X.data = (
        np.ceil(X.data) if field == "integer" else np.ones(X.nnz) if field == "pattern" else X.data
    )
    stored = X.astype(int) if field == "integer" else X
    mmwrite(tmp_path / "a.mtx", stored, symmetry=symmetry, field=field)
    affinity, ids = read_graph(tmp_path / "a.mtx")
    np.testing.assert_allclose(affinity.toarray(), X.toarray(), rtol=1e-14)
    assert ids.tolist() == list(range(20))


@pytest.mark.parametrize("name", ["edges.csv", "edges.tsv.gz", "edges.parquet"])
def test_edge_table_equals_edge_list(tmp_path, name):
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
        affinity, nodes = read_graph(tmp_path / name, **options)
        assert nodes.tolist() == ids.tolist() == [2, 3, 10]
        np.testing.assert_array_equal(affinity.toarray(), wanted.toarray())


SPARSE = ["csr", "csc", "coo", "bsr", "dia"]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "?"])
@pytest.mark.parametrize("layout", SPARSE)
def test_sparse_matrices_of_scipy(tmp_path, layout, dtype):
    dense = (np.random.default_rng(0).integers(0, 3, (12, 6)) * (np.arange(6) % 2)).astype(dtype)
    path = tmp_path / "a.npz"
    sparse.save_npz(path, sparse.csr_array(dense).asformat(layout))
    table = open_table(path)
    assert (table.n_rows, table.names[-1], table.is_sparse) == (12, "x5", True)
    assert table.dtype == (np.float32 if dtype in ("f4", "?") else np.float64)
    blocks = [block.X for block in table.blocks(5)]
    assert [block.shape[0] for block in blocks] == [5, 5, 2]
    for X in (table.read().X, sparse.vstack(blocks)):
        np.testing.assert_array_equal(X.toarray(), dense)
    some = open_table(path, columns=["x3", "x1"]).read().X
    np.testing.assert_array_equal(some.toarray(), dense[:, [3, 1]])


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
