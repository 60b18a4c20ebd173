"""``python -m heatsketch`` is the command line."""

from heatsketch.cli import app

__all__: list[str] = []

if __name__ == "__main__":
    app()
