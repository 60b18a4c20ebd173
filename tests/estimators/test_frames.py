"""Frames of pandas and polars with lists of numbers in them, as embeddings are kept."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from registry import circle

from heatsketch import HeatClustering, HeatLabels, HeatSketch
from heatsketch.exceptions import DtypeError, HeatSketchError, MissingValueError

X = np.column_stack([circle(40), np.arange(40)])
ROWS = X[:, :2].tolist()
COLUMNS = {
    "polars, List": lambda rows: pl.DataFrame({"e": rows, "t": X[: len(rows), 2]}),
    "pandas, lists": lambda rows: pd.DataFrame({"e": rows, "t": X[: len(rows), 2]}),
    "pandas, arrays": lambda rows: pd.DataFrame(
        {"e": [None if row is None else np.array(row) for row in rows], "t": X[: len(rows), 2]}
    ),
    "pandas, Arrow": lambda rows: pd.DataFrame(
        {
            "e": pd.Series(rows, dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
            "t": X[: len(rows), 2],
        }
    ),
}


@pytest.mark.parametrize("name", [*COLUMNS, "polars, Array"])
def test_lists_are_embedded_as_columns(name):
    if name == "polars, Array":
        frame = COLUMNS["polars, List"](ROWS).cast({"e": pl.Array(pl.Float64, 2)})
    else:
        frame = COLUMNS[name](ROWS)
    model = HeatSketch(3, power=2).fit(frame)
    columns = dict(zip(["e_0", "e_1", "t"], X.T, strict=True))
    wanted = HeatSketch(3, power=2).fit(type(frame)(columns))
    # scikit-learn before 1.9 finds no names in frames of polars 2.
    names = [list(getattr(fitted, "feature_names_in_", ())) for fitted in (model, wanted)]
    assert names[0] == names[1]
    assert (model.embedding_ == wanted.embedding_).all()
    assert (model.transform(frame) == wanted.embedding_).all()


@pytest.mark.parametrize("name", COLUMNS)
def test_lists_of_other_lengths_or_none_are_rejected_by_their_row(name):
    with pytest.raises(HeatSketchError, match=r"row 3 of column 'e' of X is a list of 1 numbers"):
        HeatSketch(3).fit(COLUMNS[name]([*ROWS[:3], [1.0], *ROWS[3:6]]))
    with pytest.raises(MissingValueError, match=r"row 3 of column 'e' of X holds no list"):
        HeatSketch(3).fit(COLUMNS[name]([*ROWS[:3], None, *ROWS[3:6]]))


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_lists_of_text_are_rejected(frame):
    with pytest.raises(DtypeError, match="column 'e' of X has dtype"):
        HeatSketch(3).fit(frame({"e": [["a", "b"], ["c", "d"]]}))


# --- tables of Arrow, and names of features ---------------------------------------------------


def test_columns_of_arrow_tables_are_found_by_their_names():
    table = pa.table(dict(zip("abc", X.T, strict=True)))
    model = HeatSketch(3, power=2).fit(table)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    wanted = HeatSketch(3, power=2).fit(X)
    assert (model.embedding_ == wanted.embedding_).all()
    assert (model.transform(table.to_pandas()) == wanted.embedding_).all()
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(table.rename_columns(["a", "b", "z"]))
    small = HeatSketch(3, power=2).fit(table.cast(pa.schema([(n, pa.float32()) for n in "abc"])))
    assert small.embedding_.dtype == np.float32


@pytest.mark.parametrize("index", [pd.Index(np.arange(40) * 3), pd.Index(X[:, 1], name="when")])
def test_index_of_pandas_in_an_arrow_table_is_no_feature(index):
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"], index=index)
    table = pa.Table.from_pandas(frame)
    assert table.num_columns == 3
    model = HeatSketch(3, power=2).fit(table)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert (model.embedding_ == HeatSketch(3, power=2).fit(frame).embedding_).all()


LABELS = np.where(np.arange(40) < 4, np.arange(40) % 2, -1)


@pytest.mark.parametrize("kind", [HeatLabels, HeatClustering])
def test_estimators_over_a_model_know_its_features(kind):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = HeatSketch(3).fit(frame)
    parameters = {"n_clusters": 2} if kind is HeatClustering else {}
    for model, rows in [(None, frame), (HeatSketch(3), frame), (fitted, frame), (fitted, None)]:
        found = kind(model=model, **parameters).fit(rows, LABELS)
        assert found.feature_names_in_.tolist() == ["a", "b", "c"]
        assert found.n_features_in_ == 3
        found.predict(frame)  # which warns if names are lost
        with pytest.raises(ValueError, match="feature names should match"):
            found.predict(frame.rename(columns={"a": "z"}))
    unnamed = kind(model=HeatSketch(3).fit(X), **parameters)
    unnamed.feature_names_in_ = np.array(["old"])
    assert not hasattr(unnamed.fit(None, LABELS), "feature_names_in_")
    unnamed.predict(X)
