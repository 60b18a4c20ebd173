"""The experiments of the paper, at the press of a button.

* :mod:`~heatsketch.experiments.catalogue`: which experiments there are, as data;
* :mod:`~heatsketch.experiments.methods`: which embeddings are compared;
* :mod:`~heatsketch.experiments.runner`: one trial, and all of them, resumable;
* :mod:`~heatsketch.experiments.claims`: every statement of the paper's text, with a verdict;
* :mod:`~heatsketch.experiments.figures` and :mod:`~heatsketch.experiments.page`: what to look at.

From the command line: ``heatsketch reproduce``.
"""

from heatsketch.experiments.catalogue import (
    CATALOGUE,
    ISOMETRIES,
    PAPER,
    PORTRAITS,
    Experiment,
    Portrait,
)
from heatsketch.experiments.claims import CLAIMS, judge
from heatsketch.experiments.methods import METHODS, Method
from heatsketch.experiments.runner import Results, Run, read_results, run_experiments, run_trial

__all__ = [
    "CATALOGUE",
    "CLAIMS",
    "ISOMETRIES",
    "METHODS",
    "PAPER",
    "PORTRAITS",
    "Experiment",
    "Method",
    "Portrait",
    "Results",
    "Run",
    "judge",
    "read_results",
    "run_experiments",
    "run_trial",
]
