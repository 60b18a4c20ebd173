"""A cluster of machines, by way of dask. Nothing is imported before it is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from heatsketch._core.checks import check_integer
from heatsketch.engines._base import Engine
from heatsketch.exceptions import HeatSketchError, NotStorableError


@dataclass(frozen=True, repr=False, eq=False)
class DaskEngine(Engine):
    r"""Distances :math:`d^2_{ij}` and all that follows on a cluster, for data that fits no machine.

    The embedding is that of :class:`LocalEngine`, bit-identical where they have the same graph.
    Here copies of a point do not share rows, so that many copies are best dropped first. And
    ``embedding_`` is a dask array that reads from ``storage``, and no more than a few rows ever
    come to this machine. Up to ten million points one machine is enough, and simpler.

    Parameters
    ----------
    client : distributed.Client, str or None, default=None
        The cluster, or the address of its scheduler; None starts processes on this machine, and
        ends them after the fit.
    storage : str or path-like
        A folder that this machine and all workers see. What is computed goes there, and a fit that
        was killed goes on from there if it is started again.
    rows_per_block : int or "auto", default="auto"
        Rows of a block, which one task works on, rounded up to a multiple of 4096. "auto" makes as
        many blocks as there are workers, or more where those have too little memory.
    checkpoint_every : int, default=16
        After how many products their results go to storage. When a worker dies, those since the
        last time are done again.
    graph_tolerance : float, default=0.05
        As for :class:`LocalEngine`.
    allow_unencrypted : bool, default=False
        Whether the scheduler may be reached over a network without TLS. Anyone who reaches it can
        run anything on its workers.

    Examples
    --------
    >>> from heatsketch import DaskEngine, HeatSketch
    >>> engine = DaskEngine("tls://scheduler:8786", storage="/shared/run1")
    >>> HeatSketch(32, engine=engine).fit("/shared/points.zarr")  # doctest: +SKIP
    """

    client: Any = None
    _: KW_ONLY
    storage: Any = None
    rows_per_block: Any = "auto"
    checkpoint_every: int = 16
    graph_tolerance: float = 0.05
    allow_unencrypted: bool = False

    def __post_init__(self) -> None:
        if find_spec("distributed") is None or find_spec("dask") is None:
            raise ImportError(
                'DaskEngine needs dask; install it with: pip install "heatsketch[cluster]".'
            )
        if self.storage is None:
            raise HeatSketchError(
                "storage=None: a cluster needs a folder that all workers see; give its path."
            )
        if "://" in str(self.storage):
            raise HeatSketchError(
                f"storage={self.storage!r} is no path; give a folder of a file system that all "
                "workers have mounted."
            )
        check_integer("checkpoint_every", self.checkpoint_every)
        if self.rows_per_block != "auto":
            check_integer("rows_per_block", self.rows_per_block)

    def __repr__(self) -> str:
        """Show what was chosen, as scikit-learn does."""
        values = ((f.name, getattr(self, f.name), f.default) for f in fields(self))
        chosen = (f"{name}={value!r}" for name, value, default in values if value is not default)
        return f"DaskEngine({', '.join(chosen)})"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle an address, but no connection."""
        if not isinstance(self.client, str | None):
            raise NotStorableError(
                f"client={self.client!r} is a connection, which cannot be pickled; give the "
                "address of the scheduler instead."
            )
        return vars(self)

    def __deepcopy__(self, memo: Any) -> DaskEngine:
        """A clone of an estimator works on the same cluster."""
        return self

    @contextmanager
    def working(self) -> Iterator[Engine]:
        """Connect to the cluster."""
        from heatsketch.engines._dask._session import session

        with session(self, Path(self.storage).absolute()) as engine:
            yield engine

    def neighbors(
        self, X: Any, *, metric: Any, n_neighbors: int | None, n_columns: int
    ) -> tuple[Any, Any]:
        """Find who is near whom among the rows of ``X``, and leave the distances on storage."""
        with self.working() as engine:
            return engine.neighbors(X, metric=metric, n_neighbors=n_neighbors, n_columns=n_columns)

    def in_given_order(self, block: Any, order: Any) -> Any:
        """Return the block whose row ``order[i]`` is row ``i`` of this one."""
        with self.working() as engine:
            return engine.in_given_order(block, order)
