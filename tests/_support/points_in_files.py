"""Points in files, for the command line."""

import csv

import anndata
import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse


def as_file(X, folder):
    """Write points to a file of the format that suits them, and return its path."""
    if isinstance(X, pd.DataFrame | pl.DataFrame):
        return frame_file(X, folder)
    if sparse.issparse(X) and X.ndim == 2:
        matrix = X.astype(complex) if X.dtype.kind == "c" else X
        anndata.AnnData(sparse.csr_matrix(matrix)).write_h5ad(folder / "points.h5ad")
        return folder / "points.h5ad"
    if isinstance(X, np.ma.MaskedArray):
        return text_file(X.astype(object).filled(""), folder)
    if isinstance(X, np.ndarray) and X.dtype.kind != "T":
        np.save(folder / "points.npy", X, allow_pickle=True)
        return folder / "points.npy"
    return text_file(X.todense() if sparse.issparse(X) else X, folder)


def frame_file(X, folder):
    try:
        if isinstance(X, pl.DataFrame):
            X.write_parquet(folder / "points.parquet")
        else:
            X.rename(columns=str).to_parquet(folder / "points.parquet", index=False)
    except (ValueError, TypeError, NotImplementedError):  # what Parquet has no type for
        return text_file([X.columns, *X.itertuples(index=False)], folder)
    return folder / "points.parquet"


def text_file(rows, folder):
    """Write lines with whatever the rows hold, as text."""
    with open(folder / "points.csv", "w", newline="") as file:
        writer = csv.writer(file)
        for row in np.atleast_1d(rows) if isinstance(rows, str) else rows:
            writer.writerow(row if isinstance(row, list | tuple | np.ndarray | pd.Index) else [row])
    return folder / "points.csv"
