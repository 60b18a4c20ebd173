"""Engines, which compute and store distances on this machine or a cluster."""

from heatsketch.engines._base import Engine
from heatsketch.engines._dask_engine import DaskEngine
from heatsketch.engines._local import LocalEngine

__all__ = ["DaskEngine", "Engine", "LocalEngine"]
