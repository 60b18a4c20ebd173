"""Code that all other packages use: threads, row chunks, progress, checks."""

__all__: list[str] = []
