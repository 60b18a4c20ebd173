"""Comparisons of samples on the graph of a fitted model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.parallel import with_n_jobs
from heatsketch._core.partitioned import in_memory
from heatsketch.diffusion._affinity import gaussian_affinity, local_scales, locally_scaled
from heatsketch.diffusion._compare import Comparison, checked_labels, compare_groups
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._operator import HeatOperator, heat_operator
from heatsketch.exceptions import HeatSketchError
from heatsketch.graph._joined import joined_graph
from heatsketch.graph._neighbors import Neighbors

SAMPLES = ("reference", "new")  # the groups of compare_to


class ComparingMixin:
    """Whether groups of points differ, or a new sample from the training points, and where."""

    @with_n_jobs
    def compare(
        self: Any, group: Any, *, units: Any = None, n_permutations: int = 199, level: float = 0.05
    ) -> Comparison:
        """Test whether groups of training points differ, and find around which points they do.

        Parameters
        ----------
        group : array of shape (n_samples,)
            Labels of the rows of ``X``, of two or more kinds.
        units, n_permutations, level :
            As for :func:`compare_groups`.

        Returns
        -------
        Comparison
            In the order of ``X``.

        Examples
        --------
        Two samples of digits, of which only the second has sevens:

        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from heatsketch import HeatSketch
        >>> X, digit = load_digits(return_X_y=True)
        >>> sample = np.random.default_rng(0).integers(2, size=len(X))
        >>> kept = (digit != 7) | (sample == 1)
        >>> found = HeatSketch(16).fit(X[kept]).compare(sample[kept])
        >>> found.p_value, round(float(np.mean(digit[kept][found.flagged] == 7)), 1)
        (0.005, 0.8)
        """
        model = self._as_fitted()
        A, order = model._training_operator("compare"), in_memory(model.order_)
        group = checked_labels("group", group, len(order))[order]
        if units is not None:
            units = checked_labels("units", units, len(order))[order]
        ids = in_memory(model.row_ids_) if units is None else units
        options = {"n_permutations": n_permutations, "level": level, "seed": model.seed_}
        with model._engine().working():
            return compare_groups(A, group, units=ids, **options).at(np.argsort(order))

    @with_n_jobs
    def compare_to(
        self: Any, X_new: Any, *, n_permutations: int = 199, level: float = 0.05
    ) -> Comparison:
        """Test whether a new sample differs from the training points, and find where it does.

        New points are joined to the graph of the training points, which is not searched again. The
        graph is that of a fit to both samples, so that all points are treated alike, and the test
        keeps its level as :meth:`compare` does. Where neighbours are approximate, new points
        look for theirs in the lists of the training points.

        Parameters
        ----------
        X_new : array, sparse matrix or data frame of shape (n_new, n_features)
            Points, none of them a training point.
        n_permutations, level :
            As for :func:`compare_groups`.

        Returns
        -------
        Comparison
            Of the training points in the order of ``X``, and then of the new points. The groups
            are "reference" and "new"; effects are about "new".

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from heatsketch import HeatSketch
        >>> X, digit = load_digits(return_X_y=True)
        >>> new = np.random.default_rng(0).integers(2, size=len(X)) == 1
        >>> model = HeatSketch(16).fit(X[~new & (digit != 7)])
        >>> found = model.compare_to(X[new])
        >>> flagged = found.flagged[-new.sum() :]
        >>> found.p_value, round(float(np.mean(digit[new][flagged] == 7)), 1)
        (0.005, 0.9)
        """
        model = self._as_fitted()
        A, order = _joined_operator(model, X_new), in_memory(model.order_)
        rows = np.concatenate([order, np.arange(len(order), A.shape[0])])
        options = {"n_permutations": n_permutations, "level": level, "seed": model.seed_}
        found = compare_groups(A, rows >= len(order), units=rows, **options).at(np.argsort(rows))
        return replace(found, groups=np.array(SAMPLES), group=np.full(len(rows), SAMPLES[1]))


def _joined_operator(model: Any, X_new: Any) -> HeatOperator:
    """Return the heat operator of the training points and new points together."""
    A = model._training_operator("compare_to")
    neighbors: Any = getattr(model, "neighbors_", None)
    is_local = isinstance(neighbors, Neighbors) and sparse.issparse(A.matrix)
    if not is_local or model.metric == "precomputed":
        raise HeatSketchError(
            "compare_to joins new points to nearest neighbours that this model found in memory, "
            "among points without many copies. It has none; fit a model to both samples, and use "
            "its compare."
        )
    d2 = joined_graph(neighbors, A.matrix, model._check(X_new, reset=False))
    if model.epsilon == "local":
        scales = local_scales(d2)
        d2 = locally_scaled(d2, scales, scales)
    K = gaussian_affinity(d2, epsilon=model._bandwidth)
    return heat_operator(K, SCALINGS[model._normalization](K))
