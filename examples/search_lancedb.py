"""Search by diffusion distances in LanceDB, with a filter on another column.

    python examples/search_lancedb.py

Needs LanceDB (``pip install lancedb``).
"""

from tempfile import TemporaryDirectory

import lancedb
import numpy as np
import pyarrow as pa
from sklearn.datasets import load_digits

from heatsketch import HeatSketch, vectors


def main():
    """Write a table of images, and search it by vector and by row number."""
    X, digit = load_digits(return_X_y=True)
    model = HeatSketch().fit(X[:1500])
    rows = vectors(model, append=X[:1500])
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    table = pa.table({"row": np.arange(1500), "digit": digit[:1500], "vector": column})
    query = vectors(model.transform(X[1500:1501]), append=X[1500:1501])[0]
    with TemporaryDirectory() as folder:
        images = lancedb.connect(folder).create_table("images", table)
        near = images.search(query).limit(10).to_arrow()
        recent = images.search(query).where("row >= 750", prefilter=True).limit(10).to_arrow()
    exact = np.argsort(((rows - query) ** 2).sum(axis=1))[:10]
    numbers = near["row"].to_numpy()
    print(f"the query shows a {digit[1500]}, its neighbours {near['digit'].to_pylist()}")
    print(f"recall against brute force: {len(np.intersect1d(numbers, exact)) / 10:.1f}")
    print(f"of rows from 750 on only: {min(recent['row'].to_pylist()) >= 750}")


if __name__ == "__main__":
    main()
