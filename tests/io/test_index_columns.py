"""Row indexes and row numbers in files: they are names of rows, not features."""

import warnings

import numpy as np
import pandas as pd
import pytest

from heatsketch.exceptions import FileFormatError, HeatSketchWarning
from heatsketch.io import Block, open_table, read_graph, table_writer

X = np.random.default_rng(0).standard_normal((40, 2))
FRAME = pd.DataFrame(X, columns=["x", "y"])
MOMENTS = pd.date_range("2024", periods=40)
INDEXES = {
    "rows of a larger frame": (pd.Index(np.arange(40) * 3), "__index_level_0__"),
    "a name": (pd.Index(np.arange(40)[::-1], name="id"), "id"),
    "two levels": (pd.MultiIndex.from_product([range(8), range(5)], names=["a", "b"]), "b"),
    "moments": (MOMENTS, "__index_level_0__"),
    "text": (pd.Index([f"r{row}" for row in range(40)]), "__index_level_0__"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_index_of_pandas_is_no_feature(tmp_path, name):
    index, column = INDEXES[name]
    FRAME.set_index(index).to_parquet(tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet")
    assert table.names == ("x", "y")
    np.testing.assert_array_equal(table.read().X, X)
    ids = open_table(tmp_path / "a.parquet", ids=column).read().ids
    assert len(ids) == 40
    wanted = open_table(tmp_path / "a.parquet", labels=[column]).read()
    np.testing.assert_array_equal(wanted.X, X)
    assert wanted.labels[column].tolist() == ids.tolist()


@pytest.mark.parametrize("extension", [".csv", ".tsv", ".csv.gz"])
def test_text_with_an_unnamed_column_is_rejected(tmp_path, extension):
    path, mark = tmp_path / f"a{extension}", "\t" if extension == ".tsv" else ","
    FRAME.to_csv(path, sep=mark)
    with pytest.raises(FileFormatError, match=r"columns=\['x', 'y'\]") as caught:
        open_table(path)
    assert "columns=['x', 'y']" in str(caught.value)
    np.testing.assert_array_equal(open_table(path, columns=["x", "y"]).read().X, X)
    assert open_table(path, columns=(), labels=["x"]).read().X.shape == (40, 0)
    FRAME.to_csv(path, sep=mark, index=False)
    np.testing.assert_array_equal(open_table(path).read().X, X)
    FRAME.assign(**{"": 1.0}).to_csv(path, sep=mark, index=False)
    with pytest.raises(FileFormatError, match=r"columns=\['x', 'y'\]"):
        open_table(path)


def test_index_of_pandas_is_no_part_of_an_edge(tmp_path):
    edges = pd.DataFrame({"source": [7, 8, 9], "target": [8, 9, 7]}, index=[5, 6, 8])
    edges.to_parquet(tmp_path / "a.parquet")
    edges.to_csv(tmp_path / "a.csv")
    edges.set_axis(["one", "other"], axis=1).to_parquet(tmp_path / "b.parquet")
    for name in ("a.parquet", "a.csv", "b.parquet"):
        affinity, ids = read_graph(tmp_path / name)
        assert ids.tolist() == [7, 8, 9]
        assert affinity.data.tolist() == [1] * 6
    edges.set_axis(["one", "other"], axis=1).to_csv(tmp_path / "b.csv")
    with pytest.raises(FileFormatError, match="columns="):
        read_graph(tmp_path / "b.csv")


# --- row numbers that nothing declares --------------------------------------------------------


def warnings_of(table, rows=None):
    """Read a table in blocks, and return the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in table.blocks(rows):
            pass
    assert all(issubclass(warning.category, HeatSketchWarning) for warning in caught)
    return [str(warning.message) for warning in caught]


def written(path, numbers):
    with table_writer(path, ["x", "id", "y"]) as writer:
        writer.append(Block(np.column_stack([X[:, 0], numbers, X[:, 1]])))
    return path


@pytest.mark.parametrize("rows", [None, 12])
@pytest.mark.parametrize("extension", [".npy", ".csv", ".parquet", ".zarr"])
def test_row_numbers_are_reported_once(tmp_path, extension, rows):
    path = written(tmp_path / f"a{extension}", 5 + 3 * np.arange(40))
    table = open_table(path)
    (message,) = warnings_of(table, rows)
    others = [table.names[0], table.names[2]]
    assert repr(table.names[1]) in message
    assert f"columns={others}" in message
    with pytest.warns(HeatSketchWarning, match=repr(table.names[1])):
        table.read()
    assert warnings_of(open_table(path, columns=table.names), rows) == []
    if extension not in (".npy", ".zarr"):
        assert warnings_of(open_table(path, ids="id"), rows) == []
        assert warnings_of(open_table(path, labels=["id"]), rows) == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda numbers: numbers[::-1],
        lambda numbers: numbers + 0.5,
        lambda numbers: np.where(numbers < 39, numbers, 38),
        lambda numbers: np.where(numbers == 7, 6, numbers),
        lambda numbers: np.where(numbers < 39, numbers, np.nan),
        lambda numbers: np.where(numbers < 39, numbers, 39.5),
        lambda numbers: numbers // 2,
    ],
)
def test_other_numbers_are_not_reported(tmp_path, spoil):
    table = open_table(written(tmp_path / "a.parquet", spoil(np.arange(40.0))))
    assert warnings_of(table) == []
