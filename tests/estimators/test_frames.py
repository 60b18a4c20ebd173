"""Tables of Arrow, and names of features."""

import numpy as np
import pyarrow as pa
import pytest
from registry import circle

from heatsketch import HeatSketch

X = np.column_stack([circle(40), np.arange(40)])


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
