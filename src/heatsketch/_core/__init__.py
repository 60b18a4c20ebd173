"""Code that every other package uses: threads, chunks of rows, progress, checks."""

__all__: list[str] = []
