"""HeatLabels: a classifier for many points with few labels."""

from __future__ import annotations

import reprlib
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from heatsketch._core.parallel import with_n_jobs
from heatsketch._core.partitioned import in_memory
from heatsketch._core.warn import warn
from heatsketch.estimators._base import HeatEstimator, checks_parameters
from heatsketch.exceptions import DisconnectedGraphWarning, HeatSketchError, RareClassWarning
from heatsketch.heat import HeatGraph
from heatsketch.heat._graph import Batch
from heatsketch.heat._sketch import seed_of
from heatsketch.uses._labels import (
    SHARPNESS,
    VOTING_SHARPNESS,
    class_probabilities,
    class_weights,
    conformal_threshold,
    label_margins,
    label_sources,
    n_held_out,
    neighbor_means,
    potentials,
    score_scale,
)
from heatsketch.uses._links import link_weights

__all__ = ["HeatLabels", "Suspects"]


class Suspects(NamedTuple):
    """Labels, ranked by how much their neighbours disagree with them.

    Attributes
    ----------
    rows : array of int of shape (n_known,)
        Rows of ``X`` that have a label, the most suspect first.
    margin : array of float of shape (n_known,)
        The share of the neighbours' votes for the label, minus the largest share for another one:
        from -1, if all agree on another label, to 1, if all agree with this one. It is 0 if no
        neighbour has a label.
    suggested : array of shape (n_known,)
        The label with the largest share of votes; it differs from the given label if the margin is
        negative.

    Examples
    --------
    >>> from heatsketch import Suspects
    >>> Suspects._fields
    ('rows', 'margin', 'suggested')
    """

    rows: np.ndarray
    margin: np.ndarray
    suggested: np.ndarray


class _Rule(NamedTuple):
    """Rule that converts scores of points to class probabilities.

    ``has_label`` marks the classes that the rule has labels of. It has scores of these only; the
    others get probability zero.
    """

    potentials: np.ndarray
    scale: float
    weights: np.ndarray
    has_label: np.ndarray

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        probabilities = np.zeros((len(scores), len(self.has_label)))
        probabilities[:, self.has_label] = class_probabilities(scores, self.scale, self.weights)
        return probabilities


class HeatLabels(ClassifierMixin, HeatEstimator):
    r"""Classify all points from the labels of a few.

    .. math:: u = \sum_{t \ge 0} \alpha^t P^t D^{-1} b, \qquad
              \hat y_x = \mathrm{argmax}_c \sum_j W_{xj} u_{jc}

    This is Poisson learning (Calder et al., 2020) with a horizon of 2500 steps: labels are sources
    ``b`` of heat, which diffuses over the graph of all points, labelled or not. ``W`` contains the
    weights of the graph to the eighth power (given weights as they are), ``D`` their row sums, and
    ``P`` is their random walk. The method is designed for one to ten labels per class. With many
    more labels, a classifier of the features themselves is often better.

    Parameters
    ----------
    priors : array of shape (n_classes,) or None, default=None
        Shares of the classes among the training points, in the order of ``classes_``. Classes are
        weighted so that the mean probabilities of the training points equal these shares. None
        weights the classes equally.
    unknown : int, float or str, default=-1
        Value that marks an unknown label in ``y``.
    random_state : int, RandomState instance or None, default=0
        Seed of the choice of labels that :meth:`predict_set` holds out.
    n_neighbors, metric, weights, normalization, engine, n_jobs, verbose :
        As for :class:`HeatSketch`. Not all pairs, unless distances or weights are sparse.

    Attributes
    ----------
    graph_ : HeatGraph
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    transduction_ : array of shape (n_samples,)
        Labels of all training points, as :meth:`predict` returns them. They may differ from the
        given labels, if all neighbours have another label.
    label_distributions_ : array of shape (n_samples, n_classes)
        Class probabilities of all training points.
    held_out_ : array of int of shape (n_held_out,)
        Rows of ``X`` whose labels :meth:`predict_set` holds out.
    n_features_in_, feature_names_in_ :
        As for :class:`HeatSketch`.

    Examples
    --------
    Only the first ten images, one of each digit, are labelled:

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatLabels
    >>> X, digits = load_digits(return_X_y=True)
    >>> y = np.full(len(X), -1)
    >>> y[:10] = digits[:10]
    >>> model = HeatLabels().fit(X, y)
    >>> round(float(np.mean(model.transduction_ == digits)), 2)
    0.9
    >>> bool((model.predict(X[:100]) == model.transduction_[:100]).all())
    True
    """

    classes_: np.ndarray
    transduction_: np.ndarray
    label_distributions_: np.ndarray
    held_out_: np.ndarray

    _fitted: ClassVar[tuple[str, ...]] = (
        *("graph_", "classes_", "label_distributions_", "held_out_"),
        *("_labels", "_rules", "_held_out_scores"),
    )
    _parameter_constraints: ClassVar[dict] = {
        **HeatEstimator._parameter_constraints,
        "priors": ["array-like", None],
        "unknown": "no_validation",
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        priors=None,
        unknown=-1,
        n_neighbors=15,
        metric="euclidean",
        weights="local",
        normalization="auto",
        random_state=0,
        engine=None,
        n_jobs=None,
        verbose=None,
    ):
        self.priors = priors
        self.unknown = unknown
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.weights = weights
        self.normalization = normalization
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: Any, y: Any, *, label_weights: Any = None, ids: Any = None) -> Self:
        """Propagate the known labels to all points.

        Parameters
        ----------
        X, ids :
            As for :meth:`HeatSketch.fit`: points, labelled or not, or a graph.
        y : array of shape (n_samples,)
            Labels, numbers or text; ``unknown`` for points without a label.
        label_weights : array of shape (n_samples,), optional
            Weights of the labels; one by default. Weights of unknown labels are ignored, and a
            label of weight zero counts as unknown.

        Returns
        -------
        self
        """
        with self._working(X):
            graph = self._graph_of(X, ids)
            classes, labels, weights = self._encoded(y, label_weights, graph.n_samples)
            priors = self._checked_priors(classes)
            held_out = _some_labels(labels, seed_of(self.random_state))
            rest = labels.copy()
            rest[held_out] = -1
            rules, scores = _spread(graph, [labels, rest], len(classes), weights, priors)
            distributions = rules[0].probabilities(scores[0])
            apart = rules[1].probabilities(scores[1][held_out])
            _warn_about_components(graph, labels)
        self._accept(
            X,
            graph,
            classes_=classes,
            held_out_=held_out,
            label_distributions_=distributions,
            transduction_=classes[distributions.argmax(axis=1)],
            _labels=labels,
            _rules=rules,
            _held_out_scores=-apart[np.arange(len(apart)), labels[held_out]],
        )
        return self

    @with_n_jobs
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, which are not calibrated.

        They rank classes and points by how certain the labels are. Use :meth:`predict_set` for sets
        of classes with guaranteed coverage.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features)
            Training points or new points, as for :meth:`HeatSketch.transform`.

        Returns
        -------
        array of shape (n_new, n_classes)
            Rows sum to one; columns are in the order of ``classes_``.
        """
        return self._probabilities(X, 0)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each point.

        Training points get their labels in ``transduction_``.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features)
            As for :meth:`predict_proba`.

        Returns
        -------
        array of shape (n_new,)
        """
        places = self.predict_proba(X).argmax(axis=1)
        return self.classes_[places]

    @with_n_jobs
    def predict_set(self, X: Any, *, coverage: float = 0.9) -> np.ndarray:
        r"""Return sets of classes that contain the true class with given probability.

        This is split conformal prediction. Labels are propagated again without those of the rows
        ``held_out_``. These are drawn at random from all labels: a third of them, or half of them
        up to 19. A class is in the set if its probability reaches a threshold, which is chosen so
        that the true classes of about a share ``coverage`` of the held-out rows reach it. Classes
        all of whose labels are held out have probability zero.

        If the labelled rows are a random sample of the rows of ``X`` that the model was fitted to,
        the sets of the other rows contain the true class with probability at least ``coverage``,
        and at most :math:`1 / (m + 1)` more for ``m`` held-out labels without ties, however wrong
        the model is. For new points this holds approximately if they come from the same
        population: the graph was built without them. It does not hold if labels were chosen, for
        instance the same number of each class, unless the classes are equally frequent.

        The probability is a mean over samples of labels: with ``m = 20`` the share in one sample
        has a standard deviation of about 6 %, with 100 of 3 %. It is also a mean over classes, in
        the proportions of the labels; rare classes may be in few sets. Points whose class has no
        label at all count as points whose sets do not contain the true class.

        If more than about a share ``1 - coverage`` of the held-out labels are of classes all of
        whose labels are held out, no smaller set has the guarantee: each set then contains all of
        ``classes_``, with a warning, and does not contain the true class of points whose class has
        no label. With too few held-out labels, ``m < coverage / (1 - coverage)`` (fewer than 9 for
        90 %), an error is raised.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features)
            As for :meth:`predict_proba`.
        coverage : float, default=0.9
            Probability with which a set contains the true class.

        Returns
        -------
        array of bool of shape (n_new, n_classes)
            True for the classes in the set of each point. A set is empty if no class is probable
            enough.
        """
        if not 0 < coverage < 1:
            raise HeatSketchError(f"coverage={coverage!r} must be between 0 and 1; use 0.9.")
        check_is_fitted(self)
        threshold = conformal_threshold(self._held_out_scores, coverage)
        if threshold == 0:
            warn(
                RareClassWarning,
                f"Only sets of all classes reach coverage={coverage!r}, because too many classes "
                "have only held-out labels. Points of classes without any label are in no set. "
                "Label more rows, or use a smaller coverage.",
            )
        return -self._probabilities(X, 1) <= threshold

    @with_n_jobs
    def suspects(self) -> Suspects:
        """Rank the given labels by how much their neighbours disagree with them.

        This is for data in which many or all rows have a label, some of them wrong. Each label is
        compared with those of the nearest neighbours, weighted by distance, excluding the point
        itself. The number of wrong labels is not estimated: inspect the first rows.

        Returns
        -------
        Suspects

        Examples
        --------
        Twenty of 1797 labels are wrong:

        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from heatsketch import HeatLabels
        >>> X, digits = load_digits(return_X_y=True)
        >>> wrong = np.random.default_rng(0).choice(len(X), 20, replace=False)
        >>> y = digits.copy()
        >>> y[wrong] = (y[wrong] + 1) % 10
        >>> suspects = HeatLabels().fit(X, y).suspects()
        >>> int(np.isin(suspects.rows[:20], wrong).sum())
        17
        """
        check_is_fitted(self)
        graph, labels = self.graph_, self._labels
        with graph.engine.working():
            W = link_weights(graph, exponent=_exponent(graph, VOTING_SHARPNESS))
            margins, rivals = label_margins(graph, W, labels, len(self.classes_))
        known = np.flatnonzero(labels >= 0)
        rows = known[np.argsort(margins[known], kind="stable")]
        suggested = np.where(margins[rows] < 0, rivals[rows], labels[rows])
        return Suspects(rows, margins[rows], self.classes_[suggested])

    # --- the stages of a fit ----------------------------------------------------------------

    def _encoded(
        self, y: Any, label_weights: Any, n_rows: int
    ) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return the classes, the class of each row, -1 where unknown, and weights."""
        y = column_or_1d(y, warn=True)
        check_array(y, ensure_2d=False, dtype=None, input_name="y")
        unknown = str(self.unknown) if y.dtype.kind == "U" else self.unknown
        is_known = np.asarray(y != unknown)
        weights = None
        if label_weights is not None:
            weights = check_array(label_weights, ensure_2d=False, input_name="label_weights")
            if weights.shape != y.shape or (weights < 0).any():
                raise HeatSketchError(
                    f"label_weights must have a number >= 0 for each of the {len(y)} rows of X, "
                    f"got {reprlib.repr(label_weights)} of shape {weights.shape}."
                )
            is_known &= weights > 0
        if len(y) != n_rows or not is_known.any():
            raise HeatSketchError(
                f"y must have a label for each of the {n_rows} rows of X, {self.unknown!r} where "
                f"it is unknown, got {len(y)} labels of which {is_known.sum()} are known: "
                f"{reprlib.repr(y)}."
            )
        check_classification_targets(y[is_known])
        labels = np.full(n_rows, -1)
        classes, labels[is_known] = np.unique(y[is_known], return_inverse=True)
        return classes, labels, weights

    def _checked_priors(self, classes: np.ndarray) -> Any:
        if self.priors is None:
            return None
        priors = check_array(self.priors, ensure_2d=False, input_name="priors")
        n_classes = len(classes)
        if priors.shape != (n_classes,) or not (priors > 0).all() or abs(priors.sum() - 1) > 1e-6:
            raise HeatSketchError(
                f"priors must be {n_classes} positive numbers that sum to one, for the classes "
                f"{reprlib.repr(classes.tolist())}, got {reprlib.repr(self.priors)}."
            )
        return priors

    def _probabilities(self, X: Any, which: int) -> np.ndarray:
        check_is_fitted(self)
        rule, exponent = self._rules[which], _exponent(self.graph_, SHARPNESS)

        def scores(batch: Batch) -> np.ndarray:
            u = batch.of(rule.potentials)
            return neighbor_means(batch.operator, u, exponent=exponent)

        return rule.probabilities(self._rows(X).each(scores))


def _spread(
    graph: HeatGraph, labellings: list[np.ndarray], n_classes: int, weights: Any, priors: Any
) -> tuple[tuple[_Rule, ...], list[np.ndarray]]:
    """Propagate several labellings together; return rules and scores of all rows."""
    exponent = _exponent(graph, SHARPNESS)
    have_label = [np.bincount(some[some >= 0], minlength=n_classes) > 0 for some in labellings]
    sources = [
        label_sources(labels, n_classes, weights)[:, has_label]
        for labels, has_label in zip(labellings, have_label, strict=True)
    ]
    u = potentials(link_weights(graph, exponent=exponent), graph.inner(np.hstack(sources)))
    means = graph.gathered(neighbor_means(graph.operator, u, exponent=exponent))
    cut = [sources[0].shape[1]]
    scores, parts = np.split(means, cut, axis=1), np.split(in_memory(u), cut, axis=1)
    return tuple(map(_rule, parts, scores, [priors] * len(parts), have_label)), scores


def _rule(u: np.ndarray, scores: np.ndarray, priors: Any, has_label: np.ndarray) -> _Rule:
    scale = score_scale(scores)
    if priors is not None:
        priors = priors[has_label] / priors[has_label].sum()
    return _Rule(u, scale, class_weights(scores, scale, priors), has_label)


def _exponent(graph: HeatGraph, sharpness: float) -> float:
    """Return the power of weights; given weights are used as they are."""
    return 1 if graph.rule.bandwidth is None else sharpness


def _some_labels(labels: np.ndarray, seed: int) -> np.ndarray:
    """Return the rows of some labels, drawn at random from all, sorted.

    A share of each class would not be exchangeable with the other rows: each of its classes would
    also have labels that are not drawn.
    """
    known = np.random.default_rng(seed).permutation(np.flatnonzero(labels >= 0))
    return np.sort(known[: n_held_out(len(known))])


def _warn_about_components(graph: HeatGraph, labels: np.ndarray) -> None:
    components = graph.components
    is_reached = np.isin(components, components[labels >= 0])
    if not is_reached.all():
        warn(
            DisconnectedGraphWarning,
            f"y has no label in the connected components of {np.sum(~is_reached)} of "
            f"{len(is_reached)} rows of X, whose classes are all equally probable. Label a row of "
            "each component, or use more neighbours.",
        )
