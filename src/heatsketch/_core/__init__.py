"""What all other packages build on."""

__all__: list[str] = []
