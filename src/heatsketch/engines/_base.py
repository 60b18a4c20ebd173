"""Interface of engines: one required method, and some for arrays stored elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from heatsketch._core.partitioned import is_lazy


class Engine(ABC):
    r"""Base class of objects that compute and store distances between neighbours.

    :func:`gaussian_affinity` must accept the squared distances that :meth:`neighbors` returns, and
    the result must support ``K @ block``; everything else is the same for all engines. Check your
    own engine with :func:`heatsketch.testing.check_engine`.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.engines import Engine, LocalEngine
    >>> isinstance(LocalEngine(), Engine)
    True
    >>> X = np.array([[0.0], [2.0]])
    >>> neighbors, d2 = LocalEngine().neighbors(
    ...     X, metric="euclidean", n_neighbors=None)
    >>> d2
    array([[0., 4.],
           [4., 0.]])
    >>> neighbors.distances_to(X[1:])
    array([[4., 0.]])
    """

    @abstractmethod
    def neighbors(self, X: Any, *, metric: Any, n_neighbors: int | None) -> tuple[Any, Any]:
        """Find the neighbours of each row of ``X``.

        Returns an object like ``heatsketch.graph._neighbors.Neighbors``, with the ``order`` of the
        rows and ``distances_to(X_new)``, and the squared distances in this order.
        """

    # --- for engines whose arrays are stored elsewhere; the defaults suit arrays in memory -------

    @contextmanager
    def working(self) -> Iterator[Engine]:
        """Yield this engine, or one that is connected to a cluster; may be nested."""
        yield self

    def read(self, X: Any) -> Any:
        """Return ``X`` as an array in memory, or a lazy one if the engine needs it."""
        return np.asarray(X) if is_lazy(X) else X

    def hold(self, matrix: Any) -> Any:
        """Return a matrix over pairs of points in the engine's own form."""
        return matrix

    def hold_vector(self, vector: Any, K: Any) -> Any:
        """Return a vector in the engine's form for use with a matrix."""
        return vector

    def keep(self, block: Any) -> Any:
        """Compute a block of columns, and store it as long as the model exists."""
        return block

    def needs(self, *arrays: Any) -> None:
        """Keep these intermediate results when the work is done."""
        return  # nothing is deleted in memory

    def in_given_order(self, block: Any, order: Any) -> Any:
        """Return the block whose row ``order[i]`` is row ``i`` of ``block``."""
        given = np.empty_like(block)
        given[order] = block
        return given
