"""Model files: writing, validating and reading fitted models."""

__all__: list[str] = []
