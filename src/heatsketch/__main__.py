"""``python -m heatsketch`` is the command line."""

from heatsketch.cli import app

if __name__ == "__main__":
    app()
