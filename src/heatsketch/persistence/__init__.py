"""Model files: how a fitted model is written, checked and read again."""

__all__: list[str] = []
