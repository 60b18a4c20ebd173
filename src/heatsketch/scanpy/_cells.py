"""Graphs, labels and positions of the cells of an AnnData."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

from heatsketch import __version__
from heatsketch.exceptions import HeatSketchError
from heatsketch.heat import HeatGraph


def annotated(adata: Any, name: str, *, copy: bool) -> Any:
    """Return the AnnData to write to, after validation."""
    try:
        from anndata import AnnData
    except ImportError as error:
        raise ImportError(
            'heatsketch.scanpy needs anndata; install it with: pip install "heatsketch[scanpy]".'
        ) from error
    if not isinstance(adata, AnnData):
        raise HeatSketchError(
            f"{name} must be AnnData, got {type(adata).__name__}; use AnnData({name}), or "
            "heatsketch.HeatSketch, which takes arrays."
        )
    if not adata.obs_names.is_unique:
        twin = adata.obs_names[adata.obs_names.duplicated()][0]
        raise HeatSketchError(
            f"{name}.obs_names must be distinct, since the random numbers of a cell depend on its "
            f"name, but {twin!r} occurs twice; call {name}.obs_names_make_unique() first."
        )
    if not copy:
        return adata
    return adata.to_memory() if adata.isbacked else adata.copy()


# --- the graph -------------------------------------------------------------------------------


def cell_graph(
    adata: Any, neighbors_key: str | None, use_rep: str | None, obsp: str | None
) -> tuple[HeatGraph, dict[str, Any]]:
    """Return the graph of the cells, and how it was made, as values that a file can store."""
    given = {"neighbors_key": neighbors_key, "use_rep": use_rep, "obsp": obsp}
    source = {name: key for name, key in given.items() if key is not None}
    if len(source) > 1:
        sources = " and ".join(f"{name}={key!r}" for name, key in source.items())
        raise HeatSketchError(f"{sources} are several sources of neighbours; give only one.")
    ids = adata.obs_names.to_numpy(str)
    if use_rep is not None:
        graph = HeatGraph.from_points(_representation(adata, use_rep), ids=ids)
    elif obsp is not None:
        graph = HeatGraph.from_affinity(_weights(adata, obsp), ids=ids)
    else:
        kind, source = _stored_graph(adata, neighbors_key or "neighbors")
        matrix = adata.obsp[source["obsp"]]
        if kind == "distances":
            graph = HeatGraph.from_points(matrix, metric="precomputed", ids=ids)
        else:
            graph = HeatGraph.from_affinity(matrix, ids=ids)
    settings = {name: value for name, value in graph.settings.items() if value is not None}
    made = {"n_connected_components": graph.n_connected_components, "version": __version__}
    return graph, source | settings | made


def _representation(adata: Any, use_rep: str) -> Any:
    if use_rep == "X":
        return adata.X[:]  # reads the file if adata is backed
    if use_rep not in adata.obsm:
        raise HeatSketchError(
            f"use_rep={use_rep!r} is not in adata.obsm; use one of {['X', *adata.obsm]}."
        )
    return adata.obsm[use_rep]


def _weights(adata: Any, obsp: str) -> Any:
    if obsp not in adata.obsp:
        raise HeatSketchError(f"obsp={obsp!r} is not in adata.obsp; use one of {list(adata.obsp)}.")
    graphs = [graph for graph in adata.uns.values() if isinstance(graph, Mapping)]
    if obsp in ("distances", *(graph.get("distances_key") for graph in graphs)):
        raise HeatSketchError(
            f"obsp={obsp!r} holds distances, but weights must be large between similar cells; "
            "leave obsp out, or give neighbors_key, to use distances."
        )
    return adata.obsp[obsp]


def _stored_graph(adata: Any, neighbors_key: str) -> tuple[str, dict[str, Any]]:
    """Return where the distances of a graph are or, if it has none, its connectivities."""
    if neighbors_key not in adata.uns:
        raise HeatSketchError(
            f"neighbors_key={neighbors_key!r} is not in adata.uns; run scanpy.pp.neighbors(adata) "
            'first, or give use_rep, for instance "X_pca" or "X", or obsp, a matrix of weights.'
        )
    kinds = ("distances", "connectivities")
    graph = adata.uns[neighbors_key]
    named = {kind: str(graph[f"{kind}_key"]) for kind in kinds if f"{kind}_key" in graph}
    # Files from before scanpy 1.5 do not name the keys, which were always these.
    keys = named or {kind: kind for kind in kinds}
    for kind, key in keys.items():
        if key in adata.obsp:
            _log(f"using the {kind} in adata.obsp[{key!r}]; see obsp to use another matrix")
            return kind, {"neighbors_key": neighbors_key, "obsp": key}
    places = " or ".join(f"adata.obsp[{key!r}]" for key in keys.values())
    raise HeatSketchError(
        f"neighbors_key={neighbors_key!r} refers to {places}, which does not exist; run "
        "scanpy.pp.neighbors(adata) again."
    )


def _log(message: str) -> None:
    """Write a message to scanpy's log, if scanpy is in use."""
    scanpy = sys.modules.get("scanpy")
    if scanpy is not None:
        scanpy.logging.info(message)


# --- cells and their labels ------------------------------------------------------------------


def column_of(adata: Any, name: str, column: Any) -> Any:
    """Return a column of ``obs``."""
    if isinstance(column, str) and column in adata.obs:
        return adata.obs[column]
    raise HeatSketchError(f"{name}={column!r} is not in adata.obs; use one of {list(adata.obs)}.")


def position(adata: Any, argument: str, cell: Any) -> int:
    """Return the position of a cell given by name or position."""
    is_number = isinstance(cell, Integral) and not isinstance(cell, bool)
    if is_number and 0 <= int(cell) < adata.n_obs:
        return int(cell)
    if isinstance(cell, str) and cell in adata.obs_names:
        return int(adata.obs_names.get_loc(cell))
    raise HeatSketchError(
        f"{argument} must be the name of a cell, such as {adata.obs_names[0]!r}, or a position "
        f"from 0 to {adata.n_obs - 1}, got {cell!r}."
    )


def categories(
    adata: Any, argument: str, given: Any, unknown: Any = None
) -> tuple[np.ndarray, list[str]]:
    """Return the category of each cell, -1 for none, and the category names."""
    from pandas import Categorical

    if isinstance(given, Mapping):
        values = _assigned(adata, argument, given)
    else:
        column = column_of(adata, argument, given)
        values = column.where(~column.isin([unknown, ""]))
    labels = Categorical(values).remove_unused_categories()
    if not len(labels.categories):
        raise HeatSketchError(f"{argument}={given!r} must have a value in at least one cell.")
    return labels.codes.astype(np.int64), [str(name) for name in labels.categories]


def _assigned(adata: Any, argument: str, given: Mapping[Any, Any]) -> np.ndarray:
    """Return the name under which each cell is listed, None for unlisted cells."""
    values = np.full(adata.n_obs, None, dtype=object)
    for name, cells in given.items():
        for row in _positions(adata, argument, cells):
            if values[row] not in (None, str(name)):
                raise HeatSketchError(
                    f"{argument} has the cell {adata.obs_names[row]!r} under both {values[row]!r} "
                    f"and {name!r}; list it once."
                )
            values[row] = str(name)
    return values


def _positions(adata: Any, argument: str, cells: Any) -> list[int]:
    """Return the positions of cells given by names, positions or a mask of all cells."""
    listed: list[Any] = [cells] if isinstance(cells, str | Integral | np.bool_) else list(cells)
    if not listed or not all(isinstance(cell, bool | np.bool_) for cell in listed):
        return [position(adata, argument, cell) for cell in listed]
    if len(listed) != adata.n_obs:
        raise HeatSketchError(
            f"{argument}: a mask must have one value for each of the {adata.n_obs} cells, got "
            f"{len(listed)}; or give names or positions."
        )
    return np.flatnonzero(listed).tolist()


def write_shares(
    adata: Any, key: str, shares: np.ndarray, names: list[str], params: dict[str, Any]
) -> None:
    """Write a column per name to obsm, and the name of the largest share to obs."""
    from pandas import Categorical

    adata.obsm[key] = shares
    largest = np.where(np.isnan(shares).any(axis=1), -1, shares.argmax(axis=1))
    adata.obs[key] = Categorical.from_codes(largest, categories=names)
    adata.uns[key] = {"names": np.array(names, object), "params": params}
