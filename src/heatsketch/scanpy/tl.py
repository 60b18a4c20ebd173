"""Tools in the style of ``scanpy.tl``: ``hs.tl.heatsketch(adata)``."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch import __version__
from heatsketch.estimators.heat_clustering import HeatClustering
from heatsketch.estimators.heat_labels import HeatLabels
from heatsketch.exceptions import HeatSketchError
from heatsketch.heat import Sketch, sketch
from heatsketch.heat._plane import diffusion_plane
from heatsketch.heat._sketch import seed_of
from heatsketch.scanpy._cells import (
    annotated,
    categories,
    cell_graph,
    column_of,
    position,
    write_shares,
)
from heatsketch.uses._compare import compare as compare_groups
from heatsketch.uses._drift import drift_of_rows
from heatsketch.uses._harmonic import harmonic

__all__ = [
    "compare",
    "drift",
    "fate",
    "heat_clusters",
    "heat_labels",
    "heat_pseudotime",
    "heatsketch",
]

# Parameters that must agree, so that two sketches differ by their data only.
COMPARABLE = ("seed", "power", "n_comps", "normalization")


def heatsketch(
    adata: Any,
    n_comps: int = 64,
    *,
    power: Any = "all",
    n_leading: Any = "auto",
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    obsp: str | None = None,
    key_added: str | None = None,
    random_state: Any = 0,
    copy: bool = False,
) -> Any:
    r"""Embed cells so that Euclidean distances estimate diffusion distances.

    .. math:: Y = B S, \qquad E |y_i - y_j|^2 = |B_i - B_j|^2, \qquad
              B = \mathrm{diag}(v)^{-1} f(A)

    Parameters
    ----------
    adata : AnnData
        Data in memory or backed, dense or sparse. Names of cells must be unique.
    n_comps : int, default=64
        Number of components.
    power : int or "all", default="all"
        Diffusion time; see :class:`HeatSketch`. For :func:`drift`, give both data sets the same
        number.
    n_leading : int or "auto", default="auto"
        Number of leading directions; see :func:`heatsketch.sketch`. For :func:`drift` it must be 0.
    neighbors_key : str, optional
        Graph to use: ``uns[neighbors_key]`` names the entries of ``obsp`` with its distances and
        connectivities. The default is the graph of ``scanpy.pp.neighbors`` without ``key_added``.
        Its distances are used, from which the weights of links are computed anew; connectivities
        are used only if there are no distances.
    use_rep : str, optional
        Search neighbours again in this entry of ``obsm``, or in "X".
    obsp : str, optional
        Use this entry of ``obsp`` as weights of links, such as "connectivities".
    key_added : str, optional
        Name of the results in ``obsm`` and in ``uns``.
    random_state : int, RandomState instance or None, default=0
        Seed of the random numbers. The default is fixed, so that two runs can be compared. None
        draws a seed from the operating system.
    copy : bool, default=False
        Return a copy in memory instead of writing to ``adata``.

    Returns
    -------
    AnnData or None
        With these fields set:

        ``obsm["X_heatsketch"]`` or ``obsm[key_added]``
            The embedding, of shape (n_obs, n_comps).
        ``obsm["X_heatsketch_map"]`` or ``obsm[key_added + "_map"]``
            The diffusion map in two dimensions, from Ritz vectors of the sketch. Plot it with
            ``scanpy.pl.embedding(adata, "heatsketch_map")``; two components of the embedding
            would show a random projection.
        ``uns["heatsketch"]["params"]`` or ``uns[key_added]["params"]``
            Parameters of the embedding: the matrix used (``obsp``), the power, the seed, the
            version and so on, as plain values.

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
    graph, params = cell_graph(adata, neighbors_key, use_rep, obsp)
    made = sketch(graph, n_comps, power=power, n_leading=n_leading, random_state=random_state)
    key, uns_key = _places(key_added)
    adata.obsm[key] = made.embedding
    adata.obsm[f"{key}_map"] = diffusion_plane(made).points
    adata.uns[uns_key] = {"params": params | _settings(made)}
    return adata if copy else None


def heat_pseudotime(
    adata: Any,
    root: Any = None,
    *,
    n_comps: int = 128,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    obsp: str | None = None,
    key_added: str = "heat_pseudotime",
    confidence: float = 0.95,
    random_state: Any = 0,
    copy: bool = False,
) -> Any:
    r"""Compute diffusion pseudotime: distances from a root over all times.

    .. math:: t_i = |M_i - M_r|, \qquad M = \sum_{p \ge p_0} \alpha^{p - p_0} \tilde P^p

    Here :math:`\tilde P` is the random walk without its stationary part, as in ``scanpy.tl.dpt``
    (Haghverdi et al., 2016), which truncates the sum to ten eigenvectors. A sketch needs no
    eigenvectors, so their number need not be chosen, and it provides error estimates.

    Parameters
    ----------
    adata : AnnData
        Data with a graph; pseudotimes are not meaningful across its connected components.
    root : str or int, optional
        Name or position of the root cell; by default ``uns["iroot"]``.
    n_comps : int, default=128
        Number of components.
    neighbors_key, use_rep, obsp, random_state, copy :
        As for :func:`heatsketch`.
    key_added : str, default="heat_pseudotime"
        Name of the results in ``obs`` and in ``uns``.
    confidence : float, default=0.95
        Confidence level of the intervals.

    Returns
    -------
    AnnData or None
        With these fields set:

        ``obs["heat_pseudotime"]``
            Pseudotime, from 0 at the root to 1.
        ``obs["heat_pseudotime_low"]``, ``obs["heat_pseudotime_high"]``
            Interval for the value in the limit of infinitely many components, in the same unit.
            It covers the error of the sketch only, not that of the sample of cells.
        ``uns["heat_pseudotime"]["params"]``
            Parameters of the computation.

    Examples
    --------
    Cells on a line, slightly unevenly spaced:

    >>> import heatsketch.scanpy as hs
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> adata = AnnData(np.linspace(0, 9, 100)[:, np.newaxis] ** 1.1)
    >>> hs.tl.heat_pseudotime(adata, root=0, use_rep="X")
    >>> int(np.argmax(adata.obs["heat_pseudotime"]))
    99
    """
    adata = annotated(adata, "adata", copy=copy)
    root = np.asarray(adata.uns.get("iroot")).item() if root is None else root
    start = position(adata, "root", root)
    graph, params = cell_graph(adata, neighbors_key, use_rep, obsp)
    made = sketch(graph, n_comps, random_state=random_state)
    times = made.pseudotime(start, confidence=confidence)
    unit = times.distance.max() or 1.0  # if all cells are equal, all pseudotimes are zero
    for ending, values in zip(("", "_low", "_high"), times, strict=True):
        adata.obs[key_added + ending] = values / unit
    params |= {"root": str(adata.obs_names[start]), "confidence": float(confidence)}
    adata.uns[key_added] = {"params": params | _settings(made)}
    return adata if copy else None


def heat_clusters(
    adata: Any,
    n_clusters: int,
    *,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    obsp: str | None = None,
    key_added: str = "heat_clusters",
    random_state: Any = 0,
    copy: bool = False,
) -> Any:
    """Find a given number of clusters of cells; see :class:`HeatClustering`.

    Parameters
    ----------
    adata : AnnData
    n_clusters : int
    neighbors_key, use_rep, obsp, copy :
        As for :func:`heatsketch`.
    key_added : str, default="heat_clusters"
        Name of the results in ``obs`` and in ``uns``.
    random_state :
        As for :func:`heatsketch`; the seed of k-means.

    Returns
    -------
    AnnData or None
        With these fields set:

        ``obs["heat_clusters"]``
            Clusters, as categories "0", "1" and so on.
        ``uns["heat_clusters"]["params"]``
            Parameters of the computation.

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
    seed = seed_of(random_state)
    graph, params = cell_graph(adata, neighbors_key, use_rep, obsp)
    clusters = HeatClustering(n_clusters, random_state=seed).fit(graph).labels_
    names = [str(cluster) for cluster in range(n_clusters)]
    adata.obs[key_added] = Categorical.from_codes(clusters, categories=names)
    adata.uns[key_added] = {"params": params | {"n_clusters": int(n_clusters), "seed": seed}}
    return adata if copy else None


def fate(
    adata: Any,
    terminal: Any,
    *,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    obsp: str | None = None,
    key_added: str = "fate",
    copy: bool = False,
) -> Any:
    r"""Compute fate probabilities: the terminal state a random walk reaches first.

    .. math:: h_i = \sum_j P_{ij} h_j, \qquad h = e_s \text{ in cells of the terminal state } s

    The walk on the neighbour graph is reversible: it has no direction of time. Pass all
    terminal states. Other states that a walk must not leave, such as the root, can also be passed,
    and then count as fates.

    Parameters
    ----------
    adata : AnnData
    terminal : str or mapping of str to cells
        A column of ``obs`` with the terminal state of some cells, missing or empty in all others,
        or a mapping from each state to names or positions of its cells, or a mask of all cells:
        ``{"Mono": ["cell 7", "cell 9"]}``.
    neighbors_key, use_rep, obsp, copy :
        As for :func:`heatsketch`.
    key_added : str, default="fate"
        Name of the results in ``obs``, ``obsm`` and ``uns``.

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
            The ``names`` of the columns, and ``params``, the parameters of the computation.

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
    graph, params = cell_graph(adata, neighbors_key, use_rep, obsp)
    rows = np.flatnonzero(codes >= 0)
    shares = harmonic(graph, np.eye(len(names))[codes[rows]], rows)
    write_shares(adata, key_added, shares, names, params)
    return adata if copy else None


def heat_labels(
    adata: Any,
    labels: str,
    *,
    unknown: Any = None,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    obsp: str | None = None,
    key_added: str = "heat_labels",
    copy: bool = False,
) -> Any:
    """Label all cells from a few labels; see :class:`heatsketch.HeatLabels`.

    Parameters
    ----------
    adata : AnnData
    labels : str
        Column of ``obs`` with labels, missing, empty or ``unknown`` in unlabelled cells.
    unknown : str or None, default=None
        Value that marks cells without a label.
    neighbors_key, use_rep, obsp, copy :
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
            A column of probabilities for each label. They are not calibrated.
        ``uns["heat_labels"]``
            The ``names`` of the columns, and ``params``, the parameters of the computation.

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
    graph, params = cell_graph(adata, neighbors_key, use_rep, obsp)
    shares = HeatLabels().fit(graph, codes).label_distributions_
    write_shares(adata, key_added, shares, names, params | {"labels": labels})
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
    r"""Compare two data sets: find cells that moved, and the change of geometry.

    .. math:: E |Y - Z|_F^2 = |A^p - B^p|_F^2

    Cells are matched by their names in ``obs_names``; see :func:`heatsketch.drift`.

    Parameters
    ----------
    adata, before : AnnData
        Data embedded by :func:`heatsketch` with the same seed, number of components and power,
        which must be a number, and with ``n_leading=0``.
    key : str, optional
        The ``key_added`` that was passed to :func:`heatsketch`, if any.
    key_added : str, default="drift"
        Name of the results in ``obs`` and in ``uns``.
    confidence : float, default=0.95
        Confidence level of the interval, and one minus the false discovery rate of the cells that
        moved.
    copy : bool, default=False
        Return a copy in memory instead of writing to ``adata``.

    Returns
    -------
    AnnData or None
        With these fields of ``adata`` set:

        ``obs["drift"]``
            Distance that each cell moved; NaN for cells that are not in ``before``.
        ``obs["drift_moved"]``
            Whether the cell moved more than the others.
        ``uns["drift"]``
            ``total`` with ``low``, ``high`` and ``standard_error``; ``relative``, the share of
            the heat kernel that moved; ``came`` and ``went``, the names of added and removed cells.

    Examples
    --------
    In the second data set, a hundred digits are missing, and one is replaced:

    >>> import heatsketch.scanpy as hs
    >>> from anndata import AnnData
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> before, after = AnnData(X.copy()), AnnData(X)[100:].copy()
    >>> after.X[7] = X[0]
    >>> for adata in (before, after):
    ...     hs.tl.heatsketch(adata, use_rep="X", power=2, n_leading=0)
    >>> hs.tl.drift(after, before)
    >>> after.obs["drift"].idxmax(), len(after.uns["drift"]["went"])
    ('107', 100)
    """
    adata, before = annotated(adata, "adata", copy=copy), annotated(before, "before", copy=False)
    obsm_key, uns_key = _places(key)
    _check_comparable(_made(before, "before", key), _made(adata, "adata", key))
    change = drift_of_rows(
        before.obsm[obsm_key],
        adata.obsm[obsm_key],
        ids=before.obs_names.to_numpy(str),
        other_ids=adata.obs_names.to_numpy(str),
        confidence=confidence,
    )
    rows = adata.obs_names.get_indexer(change.ids)
    distance, moved = np.full(adata.n_obs, np.nan), np.zeros(adata.n_obs, bool)
    distance[rows], moved[rows] = change.rows.distance, change.moved
    adata.obs[key_added], adata.obs[f"{key_added}_moved"] = distance, moved
    numbers = ("total", "standard_error", "low", "high", "relative")
    adata.uns[key_added] = {
        **{name: float(getattr(change, name)) for name in numbers},
        **{name: np.asarray(getattr(change, name), object) for name in ("came", "went")},
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
    obsp: str | None = None,
    n_permutations: int = 199,
    level: float = 0.05,
    key_added: str = "compare",
    random_state: Any = 0,
    copy: bool = False,
) -> Any:
    r"""Test whether groups of cells, such as case and control, differ, and where.

    .. math:: y_{ia} = \sum_j (A^p)_{ij} \, (1[g_j = a] - \pi_a)

    This is how many more cells of group ``a`` are near cell ``i`` than in permutations of the
    groups; see :func:`heatsketch.compare`. Cells of a donor resemble each other, so groups of
    donors need ``units``: without it, nearly every comparison of two donors finds differences.

    Parameters
    ----------
    adata : AnnData
    groupby : str
        Column of ``obs`` with two or more groups, in the order of their categories.
    units : str, optional
        Column of ``obs`` with the sampling units, for instance the donors. All cells of a donor are
        permuted together. By default, cells are permuted individually.
    neighbors_key, use_rep, obsp, random_state, copy :
        As for :func:`heatsketch`.
    n_permutations : int, default=199
    level : float, default=0.05
        Family-wise error rate of the flagged cells.
    key_added : str, default="compare"
        Name of the results in ``obs`` and in ``uns``.

    Returns
    -------
    AnnData or None
        With these fields set:

        ``obs["compare_effect"]``
            Share of a group around the cell, minus its mean over permutations.
        ``obs["compare_z"]``, ``obs["compare_p_value"]``
            The effect in standard deviations, and its p-value, adjusted for all cells.
        ``obs["compare_flagged"]``
            Whether groups differ around the cell.
        ``obs["compare_group"]``
            The group to which the effect refers; always the second group if there are two.
        ``uns["compare"]``
            ``p_value`` of the global test, ``groups``, and ``params``.

    Examples
    --------
    Digits as cells, where the second sample contains a class that the first lacks:

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
    options: dict[str, Any] = {"n_permutations": n_permutations, "level": level}
    options["seed"] = seed_of(random_state)
    graph, params = cell_graph(adata, neighbors_key, use_rep, obsp)
    change = compare_groups(graph, labels["groupby"], units=labels.get("units"), **options)
    for name in ("effect", "z", "flagged"):
        adata.obs[f"{key_added}_{name}"] = getattr(change, name)
    adata.obs[f"{key_added}_p_value"] = change.p_values
    adata.obs[f"{key_added}_group"] = change.group.astype(str)
    adata.uns[key_added] = {
        "p_value": change.p_value,
        "groups": change.groups.astype(str).astype(object),
        "params": params | columns | options,
    }
    return adata if copy else None


# --- keys and validation -------------------------------------------------------------------


def _settings(made: Sketch) -> dict[str, Any]:
    """Return how a sketch was made, as values that a file can store."""
    more = {"n_comps": made.n_components, "first_power": made.first_power}
    return vars(made.settings) | more


def _places(key: str | None) -> tuple[str, str]:
    """Return the keys in obsm and in uns, which are equal if ``key`` is given."""
    return ("X_heatsketch", "heatsketch") if key is None else (key, key)


def _made(adata: Any, name: str, key: str | None) -> Any:
    """Return the parameters of the sketch in an AnnData; raise if there is none."""
    obsm_key, uns_key = _places(key)
    params = adata.uns.get(uns_key, {}).get("params", {})
    if obsm_key in adata.obsm and set(COMPARABLE) <= set(params):
        return params
    raise HeatSketchError(
        f"{name}.obsm[{obsm_key!r}] and {name}.uns[{uns_key!r}]['params'] must hold a sketch; call "
        f"hs.tl.heatsketch({name}) first, or give its key_added as key."
    )


def _check_comparable(before: Any, after: Any) -> None:
    for name in COMPARABLE:
        if before[name] != after[name]:
            raise HeatSketchError(
                f"{name}={after[name]!r} in adata, but {before[name]!r} in before; call "
                "hs.tl.heatsketch with the same arguments for both."
            )
    if after["power"] == "all":
        raise HeatSketchError(
            "power='all' in adata and before, but sums over all times are approximated differently "
            "for each data set. Call hs.tl.heatsketch with one power such as power=8 for both."
        )
    if before["n_leading"] or after["n_leading"]:
        raise HeatSketchError(
            f"n_leading={after['n_leading']} in adata and {before['n_leading']} in before, but "
            "leading directions differ between data sets. Call hs.tl.heatsketch with n_leading=0 "
            "for both."
        )
