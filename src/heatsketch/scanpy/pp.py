"""Preprocessing in the style of ``scanpy.pp``: ``hs.pp.heat_smooth(adata)``."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch._core.checks import stored
from heatsketch.exceptions import HeatSketchError
from heatsketch.scanpy._cells import annotated, cell_graph
from heatsketch.uses._smooth import smooth

__all__ = ["heat_smooth"]


def heat_smooth(
    adata: Any,
    genes: Any = None,
    *,
    layer: str | None = None,
    time: Any = "auto",
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    obsp: str | None = None,
    key_added: str = "heat_smooth",
    copy: bool = False,
) -> Any:
    """Smooth gene expression over the graph of cells to reduce noise and dropout.

    The method is that of MAGIC, with a time chosen on held-out data; see :func:`heatsketch.smooth`.

    Parameters
    ----------
    adata : AnnData
    genes : str or sequence of str, optional
        Names of genes in ``var_names``; by default all genes, which gives a dense layer.
    layer : str, optional
        Layer to smooth; by default ``X``. Smoothed raw counts are divided by smoothed depths,
        where the depth of a cell is its sum over all genes of the layer.
    time : int or "auto", default="auto"
        Number of steps.
    neighbors_key, use_rep, obsp, copy :
        As for :func:`heatsketch.scanpy.tl.heatsketch`.
    key_added : str, default="heat_smooth"
        Name of the results in ``layers`` or ``obsm``, and in ``uns``.

    Returns
    -------
    AnnData or None
        With these fields set:

        ``layers["heat_smooth"]``
            Smoothed values of all genes; or
        ``obsm["heat_smooth"]``
            Smoothed values of ``genes``, as a data frame with their names.
        ``uns["heat_smooth"]``
            ``time``, the ``times`` and ``scores`` from which it was chosen, and ``params``.

    Examples
    --------
    >>> import heatsketch.scanpy as hs
    >>> from anndata import AnnData
    >>> from sklearn.datasets import load_digits
    >>> adata = AnnData(load_digits().data)
    >>> hs.pp.heat_smooth(adata, ["20", "21"], use_rep="X", time=2)
    >>> adata.obsm["heat_smooth"].shape
    (1797, 2)
    """
    from pandas import DataFrame

    adata = annotated(adata, "adata", copy=copy)
    names, values = _genes(adata, genes), _layer(adata, layer)
    graph, params = cell_graph(adata, neighbors_key, use_rep, obsp)
    sizes = values.sum(axis=1) if _are_counts(values) else None
    some = values if names is None else values[:, adata.var_names.get_indexer(names)]
    smoothed = smooth(graph, some, time=time, sizes=sizes)
    if names is None:
        adata.layers[key_added] = smoothed.values
    else:
        frame = DataFrame(smoothed.values, index=adata.obs_names, columns=names)
        adata.obsm[key_added] = frame
    adata.uns[key_added] = {
        "time": smoothed.time,
        "times": smoothed.times,
        "scores": smoothed.scores,
        "params": params | {"layer": "X" if layer is None else layer},
    }
    return adata if copy else None


def _are_counts(values: Any) -> bool:
    """Return True if all numbers are nonnegative integers."""
    entries = stored(values)
    return bool(entries.size and entries.min() >= 0 and (entries == np.rint(entries)).all())


def _genes(adata: Any, genes: Any) -> list[str] | None:
    if genes is None:
        return None
    names = [genes] if isinstance(genes, str) else list(genes)
    if names and len(set(names)) == len(names) and set(names) <= set(adata.var_names):
        return names
    raise HeatSketchError(
        f"genes must be distinct names in adata.var_names, got {names}; use names like "
        f"{adata.var_names[0]!r}."
    )


def _layer(adata: Any, layer: str | None) -> Any:
    if layer is None:
        return adata.X[:]  # reads the file if adata is backed
    if layer not in adata.layers:
        raise HeatSketchError(
            f"layer={layer!r} is not in adata.layers; use one of {list(adata.layers)}, or None for "
            "adata.X."
        )
    return adata.layers[layer]
