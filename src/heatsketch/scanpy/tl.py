"""The tools, as scanpy has them: ``hs.tl.heatsketch(adata)``."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch import __version__
from heatsketch._core.row_names import row_numbers
from heatsketch.diffusion._drift import drift as sketch_drift
from heatsketch.estimators._validation import seed_of
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.exceptions import HeatSketchError

__all__ = ["drift", "heat_pseudotime", "heatsketch"]

DEFAULT_SEED = 0
# What two sketches must have in common, or their difference would be one of these, too.
COMPARABLE = (
    "seed",
    "power",
    "first_power",
    "n_comps",
    "normalization",
    "weighting",
    "random_matrix",
)


def heatsketch(
    adata: Any,
    n_comps: int = 64,
    *,
    power: Any = "all",
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    key_added: str | None = None,
    rng: Any = None,
    random_state: Any = None,
    copy: bool = False,
) -> Any:
    r"""Embed cells so that Euclidean distances estimate diffusion distances.

    .. math:: Y = \frac{1}{\sqrt{k}} f(A) G, \qquad E |y_i - y_j|^2 = |f(A)_i - f(A)_j|^2

    Parameters
    ----------
    adata : AnnData
        In memory or backed, dense or sparse. Cells have names of their own.
    n_comps : int, default=64
        Columns of the sketch. Distances have a relative error of about ``1 / sqrt(2 n_comps)``.
    power : int or "all", default="all"
        Diffusion time; see :class:`HeatSketch`. For :func:`drift` give both the same number.
    neighbors_key : str, optional
        Which graph to use: ``uns[neighbors_key]`` names the entry of ``obsp`` with its distances.
        If left out, the one of ``scanpy.pp.neighbors`` without ``key_added``.
    use_rep : str, optional
        Search neighbours again, in this entry of ``obsm``, or in "X".
    key_added : str, optional
        Name of the results in ``obsm`` and in ``uns``.
    rng : int, numpy.random.Generator or None, default=None
        Seed of the random numbers. None is the seed 0, so that two runs can be compared.
    random_state : int, numpy.random.RandomState or None, default=None
        The same by its older name, as in scanpy; give one of the two.
    copy : bool, default=False
        Return a copy, in memory, instead of writing to ``adata``.

    Returns
    -------
    AnnData or None
        With these fields set:

        ``obsm["X_heatsketch"]`` or ``obsm[key_added]``
            The embedding, of shape (n_obs, n_comps).
        ``uns["heatsketch"]["params"]`` or ``uns[key_added]["params"]``
            How it was made: the power, the seed, the version and so on, as plain values.

    Examples
    --------
    >>> import heatsketch.scanpy as hs
    >>> from anndata import AnnData
    >>> from sklearn.datasets import load_digits
    >>> adata = AnnData(load_digits().data)
    >>> hs.tl.heatsketch(adata, 32, use_rep="X")
    >>> adata.obsm["X_heatsketch"].shape
    (1797, 32)
    """
    adata = _annotated(adata, "adata", copy=copy)
    source = _source(adata, neighbors_key, use_rep)
    model = _fitted(
        adata, source, HeatSketch(n_comps, power=power, random_state=_seed(rng, random_state))
    )
    key, uns_key = _places(key_added)
    adata.obsm[key] = model.embedding_
    adata.uns[uns_key] = {"params": _params(model, source)}
    return adata if copy else None


def heat_pseudotime(
    adata: Any,
    root: Any = None,
    *,
    n_comps: int = 128,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    key_added: str = "heat_pseudotime",
    confidence: float = 0.95,
    rng: Any = None,
    random_state: Any = None,
    copy: bool = False,
) -> Any:
    r"""Diffusion pseudotime: how far cells are from a root, at all diffusion times together.

    .. math:: t_i = |M_i - M_r|, \qquad M = \sum_{p \ge p_0} \alpha^{p - p_0} \tilde P^p

    with the random walk :math:`\tilde P` without its stationary part, as in ``scanpy.tl.dpt``
    (Haghverdi et al., 2016), which cuts the sum to ten eigenvectors. A sketch needs none, so there
    is no number of eigenvectors to choose, and it knows its error.

    Parameters
    ----------
    adata : AnnData
        Across connected components of its graph pseudotime means no more than 'far'.
    root : str or int, optional
        Name or position of the cell to start from; ``uns["iroot"]`` if left out.
    n_comps : int, default=128
        Columns of the sketch. The error of a pseudotime is about ``1 / sqrt(2 n_comps)`` of it.
    neighbors_key, use_rep, rng, random_state, copy :
        As for :func:`heatsketch`.
    key_added : str, default="heat_pseudotime"
        Name of the results in ``obs`` and in ``uns``.
    confidence : float, default=0.95
        Of the intervals.

    Returns
    -------
    AnnData or None
        With these fields set:

        ``obs["heat_pseudotime"]``
            From 0, at the root, to 1.
        ``obs["heat_pseudotime_low"]``, ``obs["heat_pseudotime_high"]``
            Between which the value lies that a sketch of endless width would have, in the same
            unit. It is the error of the sketch, not that of the sample of cells.
        ``uns["heat_pseudotime"]["params"]``
            How it was made.

    Examples
    --------
    Cells on a line, a little unevenly:

    >>> import heatsketch.scanpy as hs
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> adata = AnnData(np.linspace(0, 9, 100)[:, np.newaxis] ** 1.1)
    >>> hs.tl.heat_pseudotime(adata, root=0, use_rep="X")
    >>> int(np.argmax(adata.obs["heat_pseudotime"]))
    99
    """
    adata = _annotated(adata, "adata", copy=copy)
    start = _root(adata, root)
    source = _source(adata, neighbors_key, use_rep)
    # The weighting is that of diffusion pseudotime; without it, cells where many are would seem
    # late.
    seeded = {"weighting": "random_walk", "random_state": _seed(rng, random_state)}
    model = _fitted(adata, source, HeatSketch(n_comps, **seeded))
    found = model.pseudotime(start, confidence=confidence)
    unit = found.distance.max() or 1.0  # of cells that are all equal, none is late
    for ending, values in zip(("", "_low", "_high"), found, strict=True):
        adata.obs[key_added + ending] = values / unit
    adata.uns[key_added] = {
        "params": _params(model, source)
        | {"root": str(adata.obs_names[start]), "confidence": float(confidence)}
    }
    return adata if copy else None


def drift(
    adata: Any,
    before: Any,
    *,
    key: str | None = None,
    key_added: str = "drift",
    confidence: float = 0.95,
    copy: bool = False,
) -> Any:
    r"""Which cells moved between two data sets, and how far the geometry did as a whole.

    .. math:: E |Y - Z|_F^2 = |A^p - B^p|_F^2

    Cells are paired by their names in ``obs_names``; see :func:`heatsketch.diffusion._drift.drift`.

    Parameters
    ----------
    adata, before : AnnData
        Both after :func:`heatsketch` with the same seed, number of components and power.
    key : str, optional
        The ``key_added`` that :func:`heatsketch` was given, if any.
    key_added : str, default="drift"
        Name of the results in ``obs`` and in ``uns``.
    confidence : float, default=0.95
        Of the interval, and one minus the false discovery rate of the cells that moved.
    copy : bool, default=False
        Return a copy, in memory, instead of writing to ``adata``.

    Returns
    -------
    AnnData or None
        With these fields of ``adata`` set:

        ``obs["drift"]``
            How far each cell moved; NaN for those that ``before`` lacks.
        ``obs["drift_moved"]``
            Whether it moved more than the others.
        ``uns["drift"]``
            ``total`` with ``low``, ``high`` and ``standard_error``; ``relative``, the share of
            the heat kernel that moved; the names of cells that ``came`` and that ``went``.

    Examples
    --------
    Digits, of which a hundred are missing the second time, and one shows something else:

    >>> import heatsketch.scanpy as hs
    >>> from anndata import AnnData
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> before, after = AnnData(X.copy()), AnnData(X)[100:].copy()
    >>> after.X[7] = X[0]
    >>> for adata in (before, after):
    ...     hs.tl.heatsketch(adata, use_rep="X", power=2)
    >>> hs.tl.drift(after, before)
    >>> after.obs["drift"].idxmax(), len(after.uns["drift"]["went"])
    ('107', 100)
    """
    adata, before = _annotated(adata, "adata", copy=copy), _annotated(before, "before", copy=False)
    obsm_key, uns_key = _places(key)
    made = [_made(data, name, key) for data, name in ((before, "before"), (adata, "adata"))]
    _check_comparable(*made)
    found = sketch_drift(
        before.obsm[obsm_key],
        adata.obsm[obsm_key],
        ids=before.obs_names.to_numpy(str),
        other_ids=adata.obs_names.to_numpy(str),
        confidence=confidence,
        random_matrix=str(made[0]["random_matrix"]),
    )
    rows = adata.obs_names.get_indexer(found.ids)
    far, moved = np.full(adata.n_obs, np.nan), np.zeros(adata.n_obs, bool)
    far[rows], moved[rows] = found.rows.distance, found.moved
    adata.obs[key_added], adata.obs[f"{key_added}_moved"] = far, moved
    numbers = ("total", "standard_error", "low", "high", "relative")
    adata.uns[key_added] = {
        **{name: float(getattr(found, name)) for name in numbers},
        **{name: np.asarray(getattr(found, name), object) for name in ("came", "went")},
        "params": {"confidence": float(confidence), "key": uns_key, "version": __version__},
    }
    return adata if copy else None


# --- what comes in -------------------------------------------------------------------------


def _annotated(adata: Any, name: str, *, copy: bool) -> Any:
    """Return the AnnData to write to."""
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


def _source(adata: Any, neighbors_key: str | None, use_rep: str | None) -> dict[str, str]:
    """Return where the cells' neighbours come from, after a look whether it is there."""
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
    # Files from before scanpy 1.5 do not tell, and hold the one name that there was.
    return str(adata.uns[neighbors_key].get("distances_key", "distances"))


def _fitted(adata: Any, source: dict[str, str], model: HeatSketch) -> HeatSketch:
    if "neighbors_key" in source:
        model.set_params(metric="precomputed")
        X = adata.obsp[_distances_key(adata, source["neighbors_key"])]
    elif source["use_rep"] == "X":
        X = adata.X[:]  # which reads a file, if that is where it is
    else:
        X = adata.obsm[source["use_rep"]]
    # Cells, not their columns, have names here: a data frame's must not ask for the same again.
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    return model.fit(X, row_ids=row_numbers(adata.obs_names.to_numpy(str)))


def _root(adata: Any, root: Any) -> int:
    """Return the position of the root."""
    if root is None:
        if "iroot" not in adata.uns:
            raise HeatSketchError(
                "root=None, and adata.uns['iroot'] is not there; give the name of a cell as root."
            )
        root = int(adata.uns["iroot"])
    if isinstance(root, Integral) and 0 <= int(root) < adata.n_obs:
        return int(root)
    if isinstance(root, str) and root in adata.obs_names:
        return int(adata.obs_names.get_loc(root))
    raise HeatSketchError(
        f"root={root!r} is neither the name of a cell nor a position from 0 to {adata.n_obs - 1}; "
        f"names are like {adata.obs_names[0]!r}."
    )


def _seed(rng: Any, random_state: Any) -> int:
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


# --- what goes out -------------------------------------------------------------------------


def _places(key: str | None) -> tuple[str, str]:
    """Return the names in obsm and in uns, which are alike if they were chosen."""
    return ("X_heatsketch", "heatsketch") if key is None else (key, key)


def _params(model: HeatSketch, source: dict[str, str]) -> dict[str, Any]:
    """Return how a model was made, in values that a file can hold."""
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


def _made(adata: Any, name: str, key: str | None) -> Any:
    """Return how the sketch of an AnnData was made, after a look whether it is there."""
    obsm_key, uns_key = _places(key)
    params = adata.uns.get(uns_key, {}).get("params", {})
    for place, there in (
        (f"uns[{uns_key!r}]['params']", set(COMPARABLE) <= set(params)),
        (f"obsm[{obsm_key!r}]", obsm_key in adata.obsm),
    ):
        if not there:
            raise HeatSketchError(
                f"{name}.{place} is not that of a sketch; call hs.tl.heatsketch({name}) first, or "
                "give as key what was its key_added."
            )
    return params


def _check_comparable(before: Any, after: Any) -> None:
    for name in COMPARABLE:
        if before[name] != after[name]:
            raise HeatSketchError(
                f"{name}={after[name]!r} in adata, but {before[name]!r} in before; call "
                f"hs.tl.heatsketch with the same {name if name != 'seed' else 'rng'} for both."
            )
