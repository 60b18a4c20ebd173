"""The tools, as scanpy has them: ``hs.tl.heatsketch(adata)``."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch import __version__
from heatsketch.diffusion._drift import drift as sketch_drift
from heatsketch.estimators._plane import diffusion_plane
from heatsketch.estimators.heat_clustering import HeatClustering
from heatsketch.estimators.heat_labels import HeatLabels
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.exceptions import HeatSketchError
from heatsketch.scanpy._cells import (
    annotated,
    categories,
    column_of,
    fitted,
    graph_params,
    params_of,
    root_of,
    seed_from,
    source_of,
    write_shares,
)

__all__ = [
    "compare",
    "drift",
    "fate",
    "heat_clusters",
    "heat_labels",
    "heat_pseudotime",
    "heatsketch",
]

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
        ``obsm["X_heatsketch_map"]`` or ``obsm[key_added + "_map"]``
            The diffusion map in two dimensions, from Ritz vectors of the sketch. Draw it with
            ``scanpy.pl.embedding(adata, "heatsketch_map")``; two components of the embedding
            would show a random projection.
        ``uns["heatsketch"]["params"]`` or ``uns[key_added]["params"]``
            How it was made: the power, the seed, the version and so on, as plain values.

    Examples
    --------
    >>> import heatsketch.scanpy as hs
    >>> from anndata import AnnData
    >>> from sklearn.datasets import load_digits
    >>> adata = AnnData(load_digits().data)
    >>> hs.tl.heatsketch(adata, 32, use_rep="X")
    >>> adata.obsm["X_heatsketch"].shape, adata.obsm["X_heatsketch_map"].shape
    ((1797, 32), (1797, 2))
    """
    adata = annotated(adata, "adata", copy=copy)
    source = source_of(adata, neighbors_key, use_rep)
    model = fitted(
        adata, source, HeatSketch(n_comps, power=power, random_state=seed_from(rng, random_state))
    )
    key, uns_key = _places(key_added)
    adata.obsm[key] = model.embedding_
    adata.obsm[f"{key}_map"] = diffusion_plane(model).points
    adata.uns[uns_key] = {"params": params_of(model, source)}
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
    adata = annotated(adata, "adata", copy=copy)
    start = root_of(adata, root)
    source = source_of(adata, neighbors_key, use_rep)
    # The weighting is that of diffusion pseudotime; without it, cells where many are would seem
    # late.
    seeded = {"weighting": "random_walk", "random_state": seed_from(rng, random_state)}
    model = fitted(adata, source, HeatSketch(n_comps, **seeded))
    found = model.pseudotime(start, confidence=confidence)
    unit = found.distance.max() or 1.0  # of cells that are all equal, none is late
    for ending, values in zip(("", "_low", "_high"), found, strict=True):
        adata.obs[key_added + ending] = values / unit
    adata.uns[key_added] = {
        "params": params_of(model, source)
        | {"root": str(adata.obs_names[start]), "confidence": float(confidence)}
    }
    return adata if copy else None


def heat_clusters(
    adata: Any,
    n_clusters: int,
    *,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    key_added: str = "heat_clusters",
    rng: Any = None,
    random_state: Any = None,
    copy: bool = False,
) -> Any:
    """Find a given number of clusters of cells; see :class:`HeatClustering`.

    Parameters
    ----------
    adata : AnnData
    n_clusters : int
    neighbors_key, use_rep, copy :
        As for :func:`heatsketch`.
    key_added : str, default="heat_clusters"
        Name of the results in ``obs`` and in ``uns``.
    rng, random_state :
        As for :func:`heatsketch`; the seed of k-means.

    Returns
    -------
    AnnData or None
        With these fields set:

        ``obs["heat_clusters"]``
            Clusters, as categories "0", "1" and so on.
        ``uns["heat_clusters"]["params"]``
            How they were found.

    Examples
    --------
    >>> import heatsketch.scanpy as hs
    >>> from anndata import AnnData
    >>> from sklearn.datasets import load_digits
    >>> adata = AnnData(load_digits().data)
    >>> hs.tl.heat_clusters(adata, 10, use_rep="X")
    >>> adata.obs["heat_clusters"].nunique()
    10
    """
    from pandas import Categorical

    adata = annotated(adata, "adata", copy=copy)
    source, seed = source_of(adata, neighbors_key, use_rep), seed_from(rng, random_state)
    model = fitted(adata, source, HeatSketch(random_state=seed))
    found = HeatClustering(n_clusters, model, random_state=seed).fit(None)
    categories = [str(cluster) for cluster in range(found.n_clusters)]
    adata.obs[key_added] = Categorical.from_codes(found.labels_, categories=categories)
    adata.uns[key_added] = {"params": params_of(model, source) | {"n_clusters": int(n_clusters)}}
    return adata if copy else None


def fate(
    adata: Any,
    terminal: Any,
    *,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    key_added: str = "fate",
    tolerance: float = 1e-6,
    copy: bool = False,
) -> Any:
    r"""Probabilities of fates: which terminal state a random walk from a cell reaches first.

    .. math:: h_i = \sum_j P_{ij} h_j, \qquad h = e_s \text{ in cells of the terminal state } s

    The walk goes along the graph of neighbours, as often forth as back: it has no direction of
    time. Give the states that are terminal; cells of all states that a walk must not leave, such
    as the root, are fates, too, if you name them.

    Parameters
    ----------
    adata : AnnData
    terminal : str or mapping of str to cells
        A column of ``obs`` with the terminal state of some cells, missing in all others. Or the
        names or positions of the cells of each state: ``{"Mono": ["cell 7", "cell 9"]}``.
    neighbors_key, use_rep, copy :
        As for :func:`heatsketch`.
    key_added : str, default="fate"
        Name of the results in ``obs``, ``obsm`` and ``uns``.
    tolerance : float, default=1e-6
        Bound of the error of a probability.

    Returns
    -------
    AnnData or None
        With these fields set:

        ``obsm["fate"]``
            A column for each terminal state. Rows sum to one, and are NaN in connected components
            without a terminal cell.
        ``obs["fate"]``
            The most probable fate.
        ``uns["fate"]``
            The ``names`` of the columns, and ``params``: how it was made.

    Examples
    --------
    Cells on a line between two terminal states:

    >>> import heatsketch.scanpy as hs
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> adata = AnnData(np.linspace(0, 9, 101)[:, np.newaxis])
    >>> hs.tl.fate(adata, {"left": [0], "right": [100]}, use_rep="X")
    >>> adata.obsm["fate"][[0, 25, 50]].round(1).tolist()
    [[1.0, 0.0], [0.8, 0.2], [0.5, 0.5]]
    """
    adata = annotated(adata, "adata", copy=copy)
    codes, names = categories(adata, "terminal", terminal)
    source = source_of(adata, neighbors_key, use_rep)
    model = fitted(adata, source, HeatSketch(1, power=1))
    rows = np.flatnonzero(codes >= 0)
    found = model.harmonic(np.eye(len(names))[codes[rows]], rows, tolerance=tolerance)
    params = graph_params(model, source, tolerance=float(tolerance))
    write_shares(adata, key_added, found, names, params)
    return adata if copy else None


def heat_labels(
    adata: Any,
    labels: str,
    *,
    unknown: Any = None,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    key_added: str = "heat_labels",
    copy: bool = False,
) -> Any:
    """Label all cells from labels of a few, with :class:`heatsketch.HeatLabels`.

    Parameters
    ----------
    adata : AnnData
    labels : str
        A column of ``obs`` with labels, missing or ``unknown`` in other cells.
    unknown : str or None, default=None
        A label that stands for none.
    neighbors_key, use_rep, copy :
        As for :func:`heatsketch`.
    key_added : str, default="heat_labels"
        Name of the results in ``obs``, ``obsm`` and ``uns``.

    Returns
    -------
    AnnData or None
        With these fields set:

        ``obs["heat_labels"]``
            A label for every cell.
        ``obsm["heat_labels"]``
            A column with the probabilities of each label. They are not calibrated.
        ``uns["heat_labels"]``
            The ``names`` of the columns, and ``params``: how it was made.

    Examples
    --------
    >>> import heatsketch.scanpy as hs
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from sklearn.datasets import load_digits
    >>> X, digits = load_digits(return_X_y=True)
    >>> adata = AnnData(X)
    >>> adata.obs["known"] = [str(digit) if row < 10 else None for row, digit in enumerate(digits)]
    >>> hs.tl.heat_labels(adata, "known", use_rep="X")
    >>> round(float(np.mean(adata.obs["heat_labels"].astype(int) == digits)), 2)
    0.9
    """
    adata = annotated(adata, "adata", copy=copy)
    codes, names = categories(adata, "labels", labels, unknown)
    source = source_of(adata, neighbors_key, use_rep)
    model = fitted(adata, source, HeatSketch(1, power=1))
    found = HeatLabels(model).fit(None, codes)
    params = graph_params(model, source, labels=labels)
    write_shares(adata, key_added, found.label_distributions_, names, params)
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
    adata, before = annotated(adata, "adata", copy=copy), annotated(before, "before", copy=False)
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


def compare(
    adata: Any,
    groupby: str,
    *,
    units: str | None = None,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    n_permutations: int = 199,
    level: float = 0.05,
    key_added: str = "compare",
    rng: Any = None,
    random_state: Any = None,
    copy: bool = False,
) -> Any:
    r"""Whether groups of cells differ, for instance case and control, and around which cells.

    .. math:: y_{ia} = \sum_j (A^p)_{ij} \, (1[g_j = a] - \pi_a)

    is how much more of group ``a`` is around cell ``i`` than in permutations of the groups; see
    :func:`heatsketch.diffusion.compare_groups`. Cells of one donor resemble each other, so groups
    of donors need ``units``: without it nearly every comparison of two donors finds differences.

    Parameters
    ----------
    adata : AnnData
    groupby : str
        Column of ``obs`` with the groups, two or more.
    units : str, optional
        Column of ``obs`` with what was sampled, for instance the donor. All cells of a donor are
        permuted together. If left out, cells are permuted one by one.
    neighbors_key, use_rep, rng, random_state, copy :
        As for :func:`heatsketch`.
    n_permutations : int, default=199
    level : float, default=0.05
        Family-wise error of the cells that are flagged.
    key_added : str, default="compare"
        Name of the results in ``obs`` and in ``uns``.

    Returns
    -------
    AnnData or None
        With these fields set:

        ``obs["compare_effect"]``
            Share of a group around the cell, less its mean over permutations.
        ``obs["compare_z"]``, ``obs["compare_p_value"]``
            The same in standard deviations, and its p-value, adjusted for all cells.
        ``obs["compare_flagged"]``
            Whether groups differ around the cell.
        ``obs["compare_group"]``
            The group that the effect is about; always the second of two.
        ``uns["compare"]``
            ``p_value`` of the whole, ``groups``, and ``params``.

    Examples
    --------
    Digits as cells; those of the second sample have a class that the first lacks:

    >>> import heatsketch.scanpy as hs
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from sklearn.datasets import load_digits
    >>> X, digit = load_digits(return_X_y=True)
    >>> sample = np.random.default_rng(0).choice(["control", "treated"], len(X))
    >>> kept = (digit != 6) | (sample == "treated")
    >>> adata = AnnData(X[kept], {"sample": sample[kept]})
    >>> hs.tl.compare(adata, "sample", use_rep="X")
    >>> adata.uns["compare"]["p_value"]
    0.005
    """
    adata = annotated(adata, "adata", copy=copy)
    columns = {"groupby": groupby} | ({} if units is None else {"units": units})
    labels = {name: column_of(adata, name, column) for name, column in columns.items()}
    source = source_of(adata, neighbors_key, use_rep)
    # One step of two components: only the graph is of use here.
    model = fitted(adata, source, HeatSketch(2, power=1, random_state=seed_from(rng, random_state)))
    options: dict[str, Any] = {"n_permutations": n_permutations, "level": level}
    found = model.compare(labels["groupby"], units=labels.get("units"), **options)
    for name in ("effect", "z", "p_value", "flagged"):
        adata.obs[f"{key_added}_{name}"] = getattr(found, "p_values" if name == "p_value" else name)
    adata.obs[f"{key_added}_group"] = found.group.astype(str)
    adata.uns[key_added] = {
        "p_value": found.p_value,
        "groups": found.groups.astype(str).astype(object),
        "params": source | columns | options | {"seed": model.seed_, "version": __version__},
    }
    return adata if copy else None


# --- what comes in -------------------------------------------------------------------------


# --- what goes out -------------------------------------------------------------------------


def _places(key: str | None) -> tuple[str, str]:
    """Return the names in obsm and in uns, which are alike if they were chosen."""
    return ("X_heatsketch", "heatsketch") if key is None else (key, key)


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
