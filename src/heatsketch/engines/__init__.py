"""Where distances are computed and kept. An engine is one object that you pass.

``engine="local"`` is this machine; any :class:`Engine` will do instead.
"""

from __future__ import annotations

from heatsketch.engines._base import Engine
from heatsketch.engines._dask_engine import DaskEngine
from heatsketch.engines._local import LocalEngine

__all__ = ["ENGINES", "DaskEngine", "Engine", "LocalEngine", "resolve_engine"]

ENGINES: dict[str, type[Engine]] = {"local": LocalEngine}


def resolve_engine(engine: str | Engine) -> Engine:
    """Return the engine that is meant: the only place where engine names are looked up.

    Examples
    --------
    >>> from heatsketch.engines import resolve_engine
    >>> resolve_engine("local")
    LocalEngine()
    """
    if isinstance(engine, Engine):
        return engine
    if engine in ENGINES:
        return ENGINES[engine]()
    raise ValueError(
        f"engine={engine!r} is unknown; use one of {sorted(ENGINES)}, or pass an Engine."
    )
