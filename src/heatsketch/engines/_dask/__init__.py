"""Implementation of :class:`heatsketch.DaskEngine`, the only user of dask.

Data are on storage that all workers can access, in files that are written atomically. Every task
reads files or results of other tasks; the client never sends data. So everything that is lost with
a worker can be recomputed, and data on storage are not lost with the client.
"""

from __future__ import annotations

__all__: list[str] = []
