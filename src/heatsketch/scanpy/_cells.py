"""Helpers of the tools: read AnnData, select cells, record parameters."""

from __future__ import annotations

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


def source_of(adata: Any, neighbors_key: str | None, use_rep: str | None) -> dict[str, str]:
    """Return the source of the neighbours, or raise if it does not exist."""
    if use_rep is None:
        return {"neighbors_key": _checked_graph(adata, neighbors_key or "neighbors")}
    if neighbors_key is not None:
        raise HeatSketchError(
            f"neighbors_key={neighbors_key!r} and use_rep={use_rep!r} are two sources of "
            "neighbours; give one of them."
        )
    if use_rep != "X" and use_rep not in adata.obsm:
        raise HeatSketchError(
            f"use_rep={use_rep!r} is not in adata.obsm; use one of {['X', *adata.obsm]}."
        )
    return {"use_rep": use_rep}


def _checked_graph(adata: Any, neighbors_key: str) -> str:
    if neighbors_key not in adata.uns:
        raise HeatSketchError(
            f"neighbors_key={neighbors_key!r} is not in adata.uns; run scanpy.pp.neighbors(adata) "
            'first, or give use_rep, for instance "X_pca" or "X".'
        )
    distances_key = _distances_key(adata, neighbors_key)
    if distances_key not in adata.obsp:
        raise HeatSketchError(
            f"neighbors_key={neighbors_key!r} has its distances in adata.obsp[{distances_key!r}], "
            "which is not there; run scanpy.pp.neighbors(adata) again."
        )
    return neighbors_key


def _distances_key(adata: Any, neighbors_key: str) -> str:
    # Files from before scanpy 1.5 do not name the key, which was always "distances".
    return str(adata.uns[neighbors_key].get("distances_key", "distances"))


def fitted(adata: Any, source: dict[str, str], model: HeatSketch) -> HeatSketch:
    if "neighbors_key" in source:
        model.set_params(metric="precomputed")
        X = adata.obsp[_distances_key(adata, source["neighbors_key"])]
    elif source["use_rep"] == "X":
        X = adata.X[:]  # reads the file if adata is backed
    else:
        X = adata.obsm[source["use_rep"]]
    # Drop the column names of data frames, so that new data need not have the same ones.
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    return model.fit(X, row_ids=row_numbers(adata.obs_names.to_numpy(str)))


def column_of(adata: Any, name: str, column: str) -> np.ndarray:
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
    return labels.to_numpy()


def root_of(adata: Any, root: Any) -> int:
    """Return the position of the root cell."""
    if root is None:
        if "iroot" not in adata.uns:
            raise HeatSketchError(
                "root=None, and adata.uns['iroot'] is not there; give the name of a cell as root."
            )
        root = int(adata.uns["iroot"])
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
        "epsilon": str(model.epsilon),
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
        for cell in [cells] if isinstance(cells, str) else cells:
            row = position(adata, argument, cell)
            if values[row] not in (None, str(name)):
                raise HeatSketchError(
                    f"{argument}={given!r} has cell {cell!r} under {values[row]!r} and under "
                    f"{name!r}; list it once."
                )
            values[row] = str(name)
    return values


def position(adata: Any, argument: str, cell: Any) -> int:
    """Return the position of a cell given by name or position."""
    if isinstance(cell, Integral) and 0 <= int(cell) < adata.n_obs:
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
