"""Reproduction of the experiments of the paper.

* :mod:`~heatsketch.reproduction.catalogue`: the experiments, as data;
* :mod:`~heatsketch.reproduction.methods`: the embeddings that are compared;
* :mod:`~heatsketch.reproduction.runner`: one trial, and all of them, resumable;
* :mod:`~heatsketch.reproduction.claims`: every statement of the paper's text, with a verdict;
* :mod:`~heatsketch.reproduction.figures` and :mod:`~heatsketch.reproduction.page`: the output.

From the command line: ``heatsketch reproduce``.
"""

from heatsketch.reproduction.catalogue import (
    CATALOGUE,
    ISOMETRIES,
    PAPER,
    PORTRAITS,
    Experiment,
    Portrait,
)
from heatsketch.reproduction.claims import CLAIMS, judge
from heatsketch.reproduction.methods import METHODS, Method
from heatsketch.reproduction.runner import Results, Run, read_results, run_experiments, run_trial

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
