r"""Smoothing of numeric columns over a graph.

.. math:: S = \bar s \, \frac{P^t X}{P^t s}, \qquad P = \mathrm{diag}(v)^{-1} A \, \mathrm{diag}(v)

``P`` is the random walk of the heat operator ``A`` with the stationary direction ``v``. Its rows
are nonnegative and sum to one, so that a smoothed value is a weighted mean of nearby values. The
sizes ``s`` are one, unless rows were measured to different depths, like cells: nearby counts are
then added up and divided by the sum of nearby depths, and :math:`\bar s` is the mean depth. This is
MAGIC (van Dijk et al., 2018) on the graph of a fitted model.

The time ``t`` is chosen on held-out entries. Each entry of a column is assigned to one of ten folds
at random, and the entries of a fold are predicted by means of the others nearby. So an entry has no
part in its own prediction, and noise may have any distribution, if it is independent between
entries. Small data are predicted in all folds, large data in some. The score is the correlation of
predicted and held-out values, averaged over columns and folds. Noise of the held-out values lowers
the correlations at all times by the same factor, so that the maximum is at the time whose result
correlates best with the values without noise. A squared error or a likelihood would also penalize
the scale, which smoothing shrinks, and so prefer shorter times. The longest time is taken whose
score is within one standard error of the best (Breiman et al., 1984): with few data, short times
look best by chance more often than long ones, since they differ more. Predictions that are
unrelated to ``N`` held-out entries have a score with the standard deviation :math:`N^{-1/2}`. If
the best score is below 2.5 times this, the time is zero, with a warning.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.checks import check_finite, check_integer, plain_floats
from heatsketch._core.progress import steps
from heatsketch._core.warn import warn
from heatsketch.exceptions import HeatSketchError, HeatSketchWarning
from heatsketch.heat._graph import graph_of

TIMES = (0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)
PATIENCE = 3  # stop after this many times in a row without improvement
CHOICE_COLUMNS = 64  # most columns used to choose the time
N_FOLDS = 10
SCORED_ENTRIES = 2**21  # most entries of the folds that are scored; one fold is always scored
LEAST_SCORE = 2.5  # in standard deviations; noise exceeds it in a tenth of cases
CHUNK_BYTES = 2**28  # of columns smoothed at a time
SEED = 0


class Smoothing(NamedTuple):
    """Smoothed columns, with the time and the scores it was chosen by.

    Attributes
    ----------
    values : array of shape (n_samples, n_columns) or (n_samples,)
        The smoothed values; the argument ``out``, if given.
    time : int
        Number of steps.
    times : array of int of shape (m,)
        Times that were tried; empty if the time was given.
    scores : array of shape (m,)
        Mean correlation of held-out entries with their predictions, for each of these times.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatGraph, smooth
    >>> X, _ = load_digits(return_X_y=True)
    >>> noisy = X + np.random.default_rng(0).normal(0, 4, X.shape)
    >>> result = smooth(HeatGraph.from_points(X), noisy)
    >>> result.time in result.times
    True
    >>> bool(np.abs(result.values - X).mean() < 0.6 * np.abs(noisy - X).mean())
    True
    """

    values: Any
    time: int
    times: np.ndarray
    scores: np.ndarray


def smooth(
    graph: Any, values: Any, *, time: Any = "auto", sizes: Any = None, out: Any = None
) -> Smoothing:
    r"""Smooth columns of numbers over a graph to reduce noise.

    .. math:: S = \bar s \, \frac{P^t X}{P^t s}

    A smoothed value is a weighted mean over the positions of a random walk after ``time`` steps, as
    in MAGIC for gene counts.

    Parameters
    ----------
    graph : HeatGraph, or anything that has one
    values : array, sparse matrix or data frame of shape (n, m) or (n,)
        Numbers of the rows. Sparse columns are converted to dense ones in batches.
    time : int or "auto", default="auto"
        Number of steps. "auto" predicts held-out entries of at most 64 columns from their
        neighbours, and chooses the longest time whose correlation with them is within one
        standard error of the best. Noise may have any distribution, but must be independent
        between entries. If neighbours do not predict the values, the time is 0, with a warning.
    sizes : array of shape (n,) or "sum", optional
        Total measured for each row, such as the sequencing depth of a cell; "sum" uses the
        row sums. Smoothed values are then divided by smoothed sizes, and have the scale of a
        row of mean size.
    out : object of shape (n, m) that supports ``out[:, columns] = block``, optional
        Array for the result, such as a zarr array or ``numpy.memmap``; a new one if omitted.

    Returns
    -------
    Smoothing
        ``values``, ``time``, and the ``times`` and ``scores`` from which it was chosen.

    Warns
    -----
    HeatSketchWarning
        If ``time="auto"`` chooses 0, so that values are not smoothed.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import HeatGraph, smooth
    >>> K = np.eye(3) + np.eye(3, k=1) + np.eye(3, k=-1)
    >>> smooth(HeatGraph.from_affinity(K), [3.0, 0.0, 0.0], time=1).values.round(3)
    array([1.5, 1. , 0. ])
    """
    graph = graph_of(graph)
    columns, shape = _checked_values(values, graph.n_samples)
    out = _checked_output(out, columns.shape, graph.dtype)
    sizes = _checked_sizes(sizes, columns)
    times, scores = np.empty(0, int), np.empty(0)
    with graph.engine.working():
        if isinstance(time, str) and time == "auto":
            times, by_column = time_scores(graph, columns, sizes)
            scores = by_column.mean(axis=1)
            time = _chosen_time(times, by_column, graph.n_samples)
        time = check_integer("time", time, least=0)
        nearby = 1.0
        if sizes is not None:
            nearby = _walked(graph, sizes.astype(graph.dtype), time) / sizes.mean()
        n_rows, n_columns = columns.shape
        width = max(1, CHUNK_BYTES // (n_rows * graph.dtype.itemsize))
        done = steps("smoothing", -(-n_columns // width))
        for start in range(0, n_columns, width):
            some = slice(start, min(start + width, n_columns))
            out[:, some] = _walked(graph, _dense(columns, some, graph.dtype), time) / nearby
            done()
    return Smoothing(out.reshape(shape) if len(shape) == 1 else out, time, times, scores)


def walk(A: Any, block: np.ndarray, n_steps: int) -> np.ndarray:
    """Return means over the positions of a random walk after some steps."""
    if not n_steps:
        return block
    v = A.stationary[:, np.newaxis]
    block = v * block
    for _ in range(n_steps):
        block = A @ block
    block /= v
    return block


def _checked_values(values: Any, n_rows: int) -> tuple[Any, tuple[int, ...]]:
    """Return columns, in CSC format if sparse, and the shape of the result."""
    shape = values.shape if hasattr(values, "shape") else np.shape(values)
    if len(shape) not in (1, 2) or shape[0] != n_rows or 0 in shape:
        raise HeatSketchError(
            f"values must have one row of numbers for each of the {n_rows} rows of the graph, got "
            f"shape {shape}."
        )
    given = values if len(shape) == 2 else np.reshape(values, (-1, 1))
    columns = plain_floats(given, "values")
    check_finite(columns, name="values")
    return (sparse.csc_array(columns) if sparse.issparse(columns) else columns), tuple(shape)


def _checked_output(out: Any, shape: tuple[int, int], dtype: Any) -> Any:
    if out is None:
        return np.empty(shape, dtype)
    if tuple(out.shape) != shape:
        raise HeatSketchError(
            f"out must have the shape of the result, {shape}, got {tuple(out.shape)}."
        )
    return out


def _checked_sizes(sizes: Any, columns: Any) -> np.ndarray | None:
    """Return positive sizes as a column; rows with a sum of zero get size one."""
    if sizes is None:
        return None
    if isinstance(sizes, str) and sizes == "sum":
        sums = np.asarray(columns.sum(axis=1))
        sizes = np.where(sums == 0, 1.0, sums)
    given = plain_floats(np.reshape(sizes, (-1, 1)), "sizes").astype(np.float64)
    check_finite(given, name="sizes")
    if len(given) != columns.shape[0] or given.min() <= 0:
        raise HeatSketchError(
            f"sizes must have a number above 0 for each of the {columns.shape[0]} rows, got "
            f"{len(given)} numbers from {given.min():.3g}."
        )
    return given


def _dense(columns: Any, some: Any, dtype: Any) -> np.ndarray:
    """Return some columns as a dense block."""
    block = columns[:, some]
    return np.ascontiguousarray(block.toarray() if sparse.issparse(block) else block, dtype)


def _walked(graph: Any, block: np.ndarray, n_steps: int) -> np.ndarray:
    """Return a block after some steps, in the order of the given rows."""
    return graph.gathered(walk(graph.operator, graph.inner(block), n_steps))


# --- the time ---------------------------------------------------------------------------------


def time_scores(
    graph: Any, columns: Any, sizes: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and the correlation of each column and fold with its held-out entries."""
    sizes = np.ones((graph.n_samples, 1)) if sizes is None else sizes
    shares, is_out = _held_out(columns, sizes)
    weights = ~is_out * sizes
    block = graph.inner(np.hstack([shares * weights, weights]).astype(graph.dtype))
    times: list[int] = []
    scores: list[np.ndarray] = []
    done = steps("choosing the time", len(TIMES))
    for before, time in pairwise((0, *TIMES)):
        block = walk(graph.operator, block, time - before)
        known, weight = np.hsplit(graph.gathered(block).astype(np.float64), 2)
        zeros = np.zeros_like(shares)
        predicted = np.divide(known, weight, out=zeros, where=weight > 1e-9)
        times.append(time)
        scores.append(_correlations(predicted, shares, is_out))
        done()
        if len(scores) - 1 - int(np.argmax(np.mean(scores, axis=1))) >= PATIENCE:
            break
    return np.array(times), np.array(scores)


def _chosen_time(times: np.ndarray, scores: np.ndarray, n_rows: int) -> int:
    """Return the longest of the best times, or zero if neighbours predict nothing."""
    best = float(scores.mean(axis=1).max())
    n_held_out = scores.shape[1] * n_rows / N_FOLDS
    if best > LEAST_SCORE / np.sqrt(n_held_out):
        return longest_of_the_best(times, scores)
    warn(
        HeatSketchWarning,
        "time='auto' does not smooth the values, since neighbours do not predict them: the best "
        f"correlation with held-out entries is {best:.2g}. Use a graph of points that are related "
        "to the values, or give the number of steps.",
    )
    return 0


def longest_of_the_best(times: np.ndarray, scores: np.ndarray) -> int:
    """Return the longest time with a score within one standard error of the best.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.uses._smooth import longest_of_the_best
    >>> longest_of_the_best(np.array([1, 2, 4]), np.array([[0.1, 0.2], [0.3, 0.5], [0.4, 0.3]]))
    4
    >>> longest_of_the_best(np.array([1, 2, 4]), np.array([[0.1, 0.2], [0.3, 0.5], [0.2, 0.3]]))
    2
    """
    below = scores[scores.mean(axis=1).argmax()] - scores
    error = below.std(axis=1) / np.sqrt(max(scores.shape[1] - 1, 1))
    return int(times[below.mean(axis=1) <= error].max())


def _held_out(columns: Any, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values divided by sizes, once for each scored fold, and which are held out."""
    rng, some = np.random.default_rng(SEED), np.arange(columns.shape[1])
    if len(some) > CHOICE_COLUMNS:
        some = np.sort(rng.choice(some, CHOICE_COLUMNS, replace=False))
    block = _dense(columns, some, np.float64)
    fold = rng.integers(N_FOLDS, size=block.shape)
    n_scored = min(max(SCORED_ENTRIES // block.size, 1), N_FOLDS)
    is_out = np.hstack([fold == number for number in range(n_scored)])
    kept = ~is_out
    largest = np.abs(block).max(axis=0)  # squares of larger numbers may overflow
    shares = np.tile(block / np.where(largest > 0, largest, 1) / sizes, n_scored)
    # Columns are centred, so that an entry without nearby entries is predicted by the mean.
    shares = shares - shares.mean(axis=0, where=kept) if kept.any(axis=0).all() else shares
    return shares, is_out


def _correlations(x: np.ndarray, y: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Return the correlation of each column over some entries; 0 for constants."""
    counts = np.maximum(where.sum(axis=0), 1)
    x = where * (x - (where * x).sum(axis=0) / counts)
    y = where * (y - (where * y).sum(axis=0) / counts)
    lengths = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    products = (x * y).sum(axis=0)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
