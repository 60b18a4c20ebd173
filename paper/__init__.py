"""The experiments of the paper, reproduced; this folder is not part of the installed package.

* :mod:`paper.datasets` and :mod:`paper.catalogue`: point sets and experiments, as data;
* :mod:`paper.methods`: the embeddings that are compared;
* :mod:`paper.runner`: one trial, and all trials of an experiment;
* :mod:`paper.claims`: every statement of the paper's text, with a verdict;
* :mod:`paper.figures` and :mod:`paper.page`: the output.

Run all with ``python -m paper``, or one experiment with ``python -m paper outliers``.
"""
