"""The program ``heatsketch``, also ``python -m heatsketch``."""


def main() -> None:
    """Run the command line."""
    from heatsketch.cli import app

    app()


if __name__ == "__main__":
    main()
