"""Frames of pandas and polars with lists of numbers in them, as embeddings are kept."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from registry import circle

from heatsketch import HeatSketch
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
