"""``python -m paper``: run the experiments, draw the figures and judge the claims."""

import argparse
from pathlib import Path

from paper.catalogue import CATALOGUE, PAPER
from paper.page import write_report
from paper.runner import run_experiment


def main(arguments: list[str] | None = None) -> None:
    """Run the experiments that are named, by default all of the paper."""
    parser = argparse.ArgumentParser("python -m paper", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(CATALOGUE)}")
    parser.add_argument("--trials", type=int, help="of each; by default those of the catalogue")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of reproduction.md")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1, help="processes; by default one a core")
    options = parser.parse_args(arguments)
    if unknown := {*options.names} - {*CATALOGUE}:
        parser.error(f"unknown experiment {min(unknown)!r}; use some of: {', '.join(CATALOGUE)}.")
    if options.trials is not None and options.trials < 2:
        parser.error(f"--trials must be at least 2 for an interval, got {options.trials}.")
    folder, run = options.out / "reproduction", {"seed": options.seed, "n_jobs": options.jobs}
    results = [
        run_experiment(name, folder, trials=options.trials, **run)
        for name in options.names or PAPER
    ]
    print(write_report(results, folder, seed=options.seed))


if __name__ == "__main__":
    main()
