"""The interface of an engine: one method that all have, and some for remote arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from heatsketch._core.partitioned import is_lazy


class Engine(ABC):
    r"""An object that finds the distances :math:`d^2_{ij}` between neighbours and holds them.

    What :meth:`neighbors` returns must go through :func:`gaussian_affinity` and then answer
    ``K @ block``; all else is the same for every engine.
    :func:`heatsketch.testing.check_engine` tells whether an engine keeps the laws.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.engines import Engine, LocalEngine
    >>> isinstance(LocalEngine(), Engine)
    True
    >>> X = np.array([[0.0], [2.0]])
    >>> neighbors, d2 = LocalEngine().neighbors(
    ...     X, metric="euclidean", n_neighbors=None, n_columns=1)
    >>> d2
    array([[0., 4.],
           [4., 0.]])
    >>> neighbors.distances_to(X[1:])
    array([[4., 0.]])
    """

    @abstractmethod
    def neighbors(
        self, X: Any, *, metric: Any, n_neighbors: int | None, n_columns: int
    ) -> tuple[Any, Any]:
        """Find who is near whom among the rows of ``X``.

        ``n_columns`` tells how wide the blocks will be that are multiplied, for those who have to
        store them.

        Returns what remembers it, as ``heatsketch.graph._neighbors.Neighbors`` does: its
        ``order`` of the rows, and ``distances_to(X_new)``; and the squared distances in that order.
        """

    # --- for those whose arrays are not in this memory; others have nothing to do ----------------

    @contextmanager
    def working(self) -> Iterator[Engine]:
        """Give the engine that does the work of one fit: itself, or one that is connected."""
        yield self

    def read(self, X: Any) -> Any:
        """Return ``X`` as an array: in memory, or lazy where only this engine can hold it."""
        return np.asarray(X) if is_lazy(X) else X

    def hold(self, matrix: Any) -> Any:
        """Return a matrix over pairs of points as this engine holds it."""
        return matrix

    def hold_vector(self, vector: Any, K: Any) -> Any:
        """Return a vector as this engine holds it beside a matrix."""
        return vector

    def keep(self, block: Any) -> Any:
        """Return a block of columns computed, and kept for as long as a model is."""
        return block

    def finish(self, *needed: Any) -> None:
        """Delete what was kept to go on from, after a fit; some arrays are needed further on."""
        return  # nothing was

    def in_given_order(self, block: Any, order: Any) -> Any:
        """Return the block whose row ``order[i]`` is row ``i`` of this one."""
        given = np.empty_like(block)
        given[order] = block
        return given
