"""Code used by all other packages: threads, row chunks, progress, checks."""

__all__: list[str] = []
