"""The cluster behind :class:`heatsketch.DaskEngine`: the only folder that imports dask.

Numbers live on storage that all workers see, in files that are there whole or not at all. Every
task reads files, or what other tasks made of files; nothing is ever sent out by the client. So
whatever is lost with a worker can be made again, and what is on storage outlives the client, too.
"""

from __future__ import annotations

__all__: list[str] = []
