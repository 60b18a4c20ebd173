"""A sketch through its life, in any order: made, grown, saved, killed while saving, loaded, used.

Beside the model a plain account is kept of what it was made of; whatever happens, the model and its
file give the numbers of a fresh fit to that account.
"""

import os
import signal
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kill_points import kill_self_at
from registry import cloud

from heatsketch import HeatGraph, load, sketch
from heatsketch._core import atomic_file
from heatsketch.exceptions import OutputExistsError

X, NEW = cloud(40), cloud(9, seed=1)
MODELS = st.tuples(st.sampled_from([None, 6]), st.sampled_from(["gaussian", "rademacher"]))


@cache
def fresh(account):
    """Return the numbers of a model that was fitted with all its columns at once."""
    n_neighbors, random_matrix, k = account
    made = made_of(n_neighbors, random_matrix, k)
    return made.embedding, made.extend(made.graph.rows(NEW))


def made_of(n_neighbors, random_matrix, k):
    graph = HeatGraph.from_points(X, n_neighbors=n_neighbors)
    return sketch(graph, k, power=3, random_matrix=random_matrix)


def assert_same(found, wanted, account):
    """On a graph to the last bit; products of dense matrices round as they like."""
    tolerance = 0 if account[0] else 1e-13 * abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)


def assert_is(model, account):
    embedding, new = fresh(account)
    assert_same(model.embedding, embedding, account)
    assert_same(model.extend(model.graph.rows(NEW)), new, account)


def killed_save(model, path, point):
    """Save in a child that is killed at one of the calls that matter; say whether it was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child calls nothing with threads
        child = os.fork()
    if child == 0:
        kill_self_at(atomic_file, point)
        model.save(path, overwrite=True)
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


class Lifecycle(RuleBasedStateMachine):
    """A model and its file, and the account of both."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "model")
        self.saved = None  # accounts that the file may hold
        self.orphans = False

    @initialize(kind=MODELS, k=st.integers(1, 4))
    def begin(self, kind, k):
        self.fit(kind, k)

    @rule(kind=MODELS, k=st.integers(1, 4))
    def fit(self, kind, k):
        self.account = (*kind, k)
        self.model = made_of(*kind, k)

    @rule(more=st.integers(0, 3))
    def grow(self, more):
        *kind, k = self.account
        self.account = (*kind, min(k + more, 8))
        self.model = self.model.grow(self.account[-1])

    @rule()
    def save(self):
        self.model.save(self.path, overwrite=True)
        self.saved = {self.account}

    @precondition(lambda self: hasattr(os, "fork"))
    @rule(point=st.integers(0, 60))
    def save_and_be_killed(self, point):
        if killed_save(self.model, self.path, point):
            self.saved = (self.saved or {None}) | {self.account}
            self.orphans = True
        else:
            self.saved = {self.account}

    @precondition(lambda self: self.saved == {self.account})
    @rule()
    def save_unasked(self):
        with pytest.raises(OutputExistsError):
            self.model.save(self.path)

    @precondition(lambda self: self.saved and None not in self.saved)
    @rule()
    def resume(self):
        """Go on with what the file holds, the old or the new."""
        self.model = load(self.path)
        *kind, _ = self.account = self.found()
        assert self.account in self.saved
        self.saved = {self.account}
        assert self.model.graph.settings["n_neighbors"] == kind[0]

    def found(self):
        model = load(self.path)
        how = model.how()
        return how["n_neighbors"], how["random_matrix"], how["n_components"]

    @rule()
    def transform_some(self):
        found = self.model.extend(self.model.graph.rows(NEW[2:5]))
        assert_same(found, fresh(self.account)[1][2:5], self.account)

    @invariant()
    def the_model_is_the_fresh_one(self):
        assert_is(self.model, self.account)

    @invariant()
    def the_file_is_the_old_or_the_new(self):
        if self.path.exists():
            account = self.found()
            assert account in self.saved
            assert_is(load(self.path), account)
        else:
            assert self.saved is None or None in self.saved
        names = set(os.listdir(self.folder.name)) - {"model"}
        assert self.orphans or not names

    def teardown(self):
        self.folder.cleanup()


nightly = settings().max_examples > 100
Lifecycle.TestCase.settings = settings(
    max_examples=500 if nightly else 25, stateful_step_count=100 if nightly else 20, deadline=None
)
TestLifecycle = Lifecycle.TestCase
