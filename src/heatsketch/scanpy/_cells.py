"""Helpers of the tools: read AnnData, select cells, record parameters."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch import __version__
from heatsketch._core.row_names import row_numbers
from heatsketch.estimators._validation import seed_of
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.exceptions import HeatSketchError

DEFAULT_SEED = 0


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
            f"{name} is of type {type(adata).__name__}, not AnnData; use AnnData({name}), or "
            "heatsketch.HeatSketch, which takes arrays."
        )
    if not adata.obs_names.is_unique:
        twin = adata.obs_names[adata.obs_names.duplicated()][0]
        raise HeatSketchError(
            f"{name}.obs_names has {twin!r} more than once, and the random numbers of a cell "
            f"depend on its name; call {name}.obs_names_make_unique() first."
        )
    if not copy:
        return adata
    return adata.to_memory() if adata.isbacked else adata.copy()


def source_of(
    adata: Any, neighbors_key: str | None, use_rep: str | None, obsp: str | None = None
) -> dict[str, str]:
    """Return the source of the neighbours, or raise if it does not exist."""
    given = {"neighbors_key": neighbors_key, "use_rep": use_rep, "obsp": obsp}
    given = {name: key for name, key in given.items() if key is not None}
    if len(given) > 1:
        (one, key), (other, other_key), *_ = given.items()
        raise HeatSketchError(
            f"{one}={key!r} and {other}={other_key!r} are two sources of neighbours; give one of "
            "them."
        )
    if obsp is not None:
        return _weights(adata, obsp)
    if use_rep is None:
        return _graph(adata, neighbors_key or "neighbors")
    if use_rep != "X" and use_rep not in adata.obsm:
        raise HeatSketchError(
            f"use_rep={use_rep!r} is not in adata.obsm; use one of {['X', *adata.obsm]}."
        )
    return {"use_rep": use_rep}


def _weights(adata: Any, obsp: str) -> dict[str, str]:
    if obsp not in adata.obsp:
        raise HeatSketchError(f"obsp={obsp!r} is not in adata.obsp; use one of {list(adata.obsp)}.")
    graphs = [graph for graph in adata.uns.values() if isinstance(graph, Mapping)]
    if obsp in ("distances", *(graph.get("distances_key") for graph in graphs)):
        raise HeatSketchError(
            f"obsp={obsp!r} holds distances, but weights must be large between similar cells; "
            "leave obsp out, or give neighbors_key, to use distances."
        )
    return {"obsp": obsp, "affinity": "precomputed"}


def _graph(adata: Any, neighbors_key: str) -> dict[str, str]:
    """Return the distances of a graph or, if it has none, its connectivities."""
    if neighbors_key not in adata.uns:
        raise HeatSketchError(
            f"neighbors_key={neighbors_key!r} is not in adata.uns; run scanpy.pp.neighbors(adata) "
            'first, or give use_rep, for instance "X_pca" or "X", or obsp, a matrix of weights.'
        )
    keys = _keys(adata, neighbors_key)
    distances, connectivities = keys.get("distances", ""), keys.get("connectivities", "")
    source = {"neighbors_key": neighbors_key}
    if distances in adata.obsp:
        if connectivities in adata.obsp:
            method = adata.uns[neighbors_key].get("params", {}).get("method")
            _log(
                f"using the distances in obsp[{distances!r}]; the connectivities (method="
                f"{str(method)!r}) have no effect, unless given as obsp={connectivities!r}"
            )
        return source | {"obsp": distances, "metric": "precomputed"}
    if connectivities in adata.obsp:
        _log(f"using the connectivities in obsp[{connectivities!r}] as weights of links")
        return source | {"obsp": connectivities, "affinity": "precomputed"}
    places = " or ".join(f"adata.obsp[{key!r}]" for key in keys.values())
    raise HeatSketchError(
        f"neighbors_key={neighbors_key!r} has its graph in {places}, which is not there; run "
        "scanpy.pp.neighbors(adata) again."
    )


def _keys(adata: Any, neighbors_key: str) -> dict[str, str]:
    """Return the entries of obsp of a graph: "distances", "connectivities" or both."""
    kinds = ("distances", "connectivities")
    graph = adata.uns[neighbors_key]
    named = {kind: str(graph[f"{kind}_key"]) for kind in kinds if f"{kind}_key" in graph}
    # Files from before scanpy 1.5 do not name the keys, which were always these.
    return named or {kind: kind for kind in kinds}


def _log(message: str) -> None:
    """Write a message to scanpy's log, if scanpy is in use."""
    scanpy = sys.modules.get("scanpy")
    if scanpy is not None:
        scanpy.logging.info(message)


def fitted(adata: Any, source: dict[str, str], model: HeatSketch) -> HeatSketch:
    """Fit a model to the neighbours from :func:`source_of`."""
    model.set_params(**{name: source[name] for name in ("metric", "affinity") if name in source})
    if "obsp" in source:
        X = adata.obsp[source["obsp"]]
    elif source["use_rep"] == "X":
        X = adata.X[:]  # reads the file if adata is backed
    else:
        X = adata.obsm[source["use_rep"]]
    # Drop the column names of data frames, so that new data need not have the same ones.
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    return model.fit(X, row_ids=row_numbers(adata.obs_names.to_numpy(str)))


def column_of(adata: Any, name: str, column: str) -> Any:
    """Return a column of ``obs`` with its categories, or raise if a label is missing."""
    if column not in adata.obs:
        raise HeatSketchError(
            f"{name}={column!r} is not in adata.obs; use one of {list(adata.obs)}."
        )
    labels = adata.obs[column]
    if labels.isna().any():
        raise HeatSketchError(
            f"{name}={column!r} has no label for the cell {adata.obs_names[labels.isna()][0]!r}; "
            f"use adata[adata.obs[{column!r}].notna()].copy()."
        )
    return labels


def root_of(adata: Any, root: Any) -> int:
    """Return the position of the root cell."""
    if root is None:
        if "iroot" not in adata.uns:
            raise HeatSketchError(
                "root=None, and adata.uns['iroot'] is not there; give the name of a cell as root."
            )
        root = np.asarray(adata.uns["iroot"]).item()
    return position(adata, "root", root)


def seed_from(rng: Any, random_state: Any) -> int:
    if rng is not None and random_state is not None:
        raise HeatSketchError(
            f"rng={rng!r} and random_state={random_state!r} are two seeds; give one of them."
        )
    name, given, kind = "rng", rng, "numpy.random.Generator"
    if random_state is not None:
        name, given, kind = "random_state", random_state, "numpy.random.RandomState"
    if given is None:
        return DEFAULT_SEED
    if isinstance(given, Integral):
        return int(given)
    if name == "rng" and isinstance(given, np.random.Generator):
        return int(given.integers(2**31))
    if name == "random_state" and isinstance(given, np.random.RandomState):
        return seed_of(given)
    raise HeatSketchError(f"{name}={given!r} is no seed; give an integer, a {kind}, or None for 0.")


def params_of(model: HeatSketch, source: dict[str, str]) -> dict[str, Any]:
    """Return how a model was fitted, as values that a file can store."""
    return source | {
        "n_comps": int(model.n_components),
        "power": model.power,
        "first_power": model.power_,
        "epsilon": "none" if model.affinity == "precomputed" else str(model.epsilon),
        "normalization": model._normalization,
        "weighting": model.weighting,
        "stationary": model.stationary,
        "random_matrix": model.random_matrix,
        "seed": model.seed_,
        "n_connected_components": int(model.n_connected_components_),
        "version": __version__,
    }


def categories(
    adata: Any, argument: str, given: Any, unknown: Any = None
) -> tuple[np.ndarray, list[str]]:
    """Return the category of each cell, -1 for none, and the category names."""
    from pandas import Categorical

    if isinstance(given, Mapping):
        values = _assigned(adata, argument, given)
    elif isinstance(given, str) and given in adata.obs:
        column = adata.obs[given]
        values = column.where(~column.isin([unknown, ""]))
    else:
        raise HeatSketchError(
            f"{argument}={given!r} is not in adata.obs; use one of {list(adata.obs.columns)}."
        )
    found = Categorical(values).remove_unused_categories()
    if not len(found.categories):
        raise HeatSketchError(
            f"{argument}={given!r} has no value in any cell; give one or more cells a value."
        )
    return found.codes.astype(np.int64), [str(name) for name in found.categories]


def _assigned(adata: Any, argument: str, given: Mapping[Any, Any]) -> np.ndarray:
    """Return the name under which each cell is listed, None for unlisted cells."""
    values = np.full(adata.n_obs, None, dtype=object)
    for name, cells in given.items():
        for cell in _listed(adata, f"{argument}[{name!r}]", cells):
            row = position(adata, argument, cell)
            if values[row] not in (None, str(name)):
                raise HeatSketchError(
                    f"{argument}={given!r} has cell {cell!r} under {values[row]!r} and under "
                    f"{name!r}; list it once."
                )
            values[row] = str(name)
    return values


def _listed(adata: Any, argument: str, cells: Any) -> list[Any]:
    """Return names or positions of cells, also from a mask with a value for each cell."""
    single = isinstance(cells, str | Integral | np.bool_)
    listed = [cells] if single else list(cells)
    if single or not listed or not all(isinstance(cell, bool | np.bool_) for cell in listed):
        return listed
    if len(listed) != adata.n_obs:
        raise HeatSketchError(
            f"{argument} is a mask of {len(listed)} values for {adata.n_obs} cells; give one value "
            "for each cell, or names or positions."
        )
    return np.flatnonzero(listed).tolist()


def position(adata: Any, argument: str, cell: Any) -> int:
    """Return the position of a cell given by name or position."""
    is_number = isinstance(cell, Integral) and not isinstance(cell, bool)
    if is_number and 0 <= int(cell) < adata.n_obs:
        return int(cell)
    if isinstance(cell, str) and cell in adata.obs_names:
        return int(adata.obs_names.get_loc(cell))
    raise HeatSketchError(
        f"{argument}={cell!r} is neither the name of a cell nor a position from 0 to "
        f"{adata.n_obs - 1}; names are like {adata.obs_names[0]!r}."
    )


def write_shares(
    adata: Any, key: str, shares: np.ndarray, names: list[str], params: dict[str, Any]
) -> None:
    """Write a column per name to obsm, and the name of the largest share to obs."""
    from pandas import Categorical

    adata.obsm[key] = shares
    is_there = ~np.isnan(shares).any(axis=1)
    largest = np.full(len(shares), -1)
    largest[is_there] = shares[is_there].argmax(axis=1)
    adata.obs[key] = Categorical.from_codes(largest, categories=names)
    adata.uns[key] = {"names": np.array(names, object), "params": params}


def graph_params(model: HeatSketch, source: dict[str, str], **others: Any) -> dict[str, Any]:
    """Return how the graph of a model was computed."""
    of_graph = ("epsilon", "normalization", "n_connected_components", "version")
    made = params_of(model, source)
    return source | {name: made[name] for name in of_graph} | others
