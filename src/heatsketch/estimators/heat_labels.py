"""HeatLabels: a classifier for many points with few labels."""

from __future__ import annotations

import reprlib
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from heatsketch._core.parallel import with_n_jobs
from heatsketch.diffusion._labels import (
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
from heatsketch.diffusion._links import link_weights
from heatsketch.estimators._base import HeatEmbedding, checks_parameters
from heatsketch.estimators._callbacks import CallbackSupportMixin, fit_progress
from heatsketch.estimators._given_model import fitted_model
from heatsketch.estimators._validation import MACHINE_CONSTRAINTS, check_numbers, seed_of
from heatsketch.estimators._warnings import (
    warn_about_rare_classes,
    warn_about_unlabelled_components,
)
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.exceptions import HeatSketchError

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
        found = class_probabilities(scores, self.scale, self.weights)
        if self.has_label.all():
            return found
        all_classes = np.zeros((len(found), len(self.has_label)))
        all_classes[:, self.has_label] = found
        return all_classes


class HeatLabels(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""Classify all points from the labels of a few.

    .. math:: u = \sum_{t \ge 0} \alpha^t P^t D^{-1} b, \qquad
              \hat y_x = \mathrm{argmax}_c \sum_j W_{xj} u_{jc}

    This is Poisson learning (Calder et al., 2020) with a horizon of 2500 steps: labels are sources
    ``b`` of heat, which diffuses over the graph of all points, labelled or not. ``W`` contains the
    affinities of a heat model to the eighth power, ``D`` their row sums, and ``P`` is their random
    walk. The method is designed for one to ten labels per class. With many more labels, a
    classifier of the features themselves is often better.

    Parameters
    ----------
    model : HeatSketch, DiffusionMap or None, default=None
        Model that provides the graph. A fitted model is not fitted again, so that one graph can
        serve several purposes; of an unfitted model a clone is fitted. None is a graph of 15
        neighbours. The graph must be a neighbour graph (``n_neighbors``) or a precomputed one, and
        in memory. Precomputed affinities are not raised to a power.
    priors : array of shape (n_classes,) or None, default=None
        Shares of the classes among the training points, in the order of ``classes_``. Classes are
        weighted so that the mean probabilities of the training points equal these shares. None
        weights the classes equally.
    unknown : int, float or str, default=-1
        Value that marks an unknown label in ``y``.
    random_state : int, RandomState instance or None, default=0
        Seed of the choice of labels that :meth:`predict_set` holds out.
    n_jobs, verbose :
        As for :class:`HeatSketch`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    transduction_ : array of shape (n_samples,)
        Labels of all training points, as :meth:`predict` returns them. They may differ from the
        given labels, if all neighbours have another label.
    label_distributions_ : array of shape (n_samples, n_classes)
        Class probabilities of all training points.
    held_out_ : array of int of shape (n_held_out,)
        Rows of ``X`` whose labels :meth:`predict_set` holds out.
    model_ : HeatSketch or DiffusionMap
        The fitted model.
    n_products_ : int
        Number of products with the graph, each for all classes together.
    n_features_in_ : int
        Number of features of ``X``.
    feature_names_in_ : array of str
        Names of the features, if ``X`` has any.

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

    _parameter_constraints: ClassVar[dict] = {
        "model": [HeatEmbedding, None],
        "priors": ["array-like", None],
        "unknown": "no_validation",
        "random_state": ["random_state"],
        **MACHINE_CONSTRAINTS,
    }

    def __init__(
        self, model=None, *, priors=None, unknown=-1, random_state=0, n_jobs=None, verbose=None
    ):
        self.model = model
        self.priors = priors
        self.unknown = unknown
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    @with_n_jobs
    def fit(self, X: Any, y: Any, *, label_weights: Any = None) -> Self:
        """Propagate the known labels to all points.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Points, labelled or not, in a form that ``model`` accepts. None uses the points that
            ``model`` was fitted to.
        y : array of shape (n_samples,)
            Labels, numbers or text; ``unknown`` for points without a label.
        label_weights : array of shape (n_samples,), optional
            Weights of the labels; one by default. Weights of unknown labels are ignored, and a
            label of weight zero counts as unknown.

        Returns
        -------
        self
        """
        with fit_progress(self):
            # One step of one component: only the graph is needed.
            model = fitted_model(self, X, HeatSketch(1, power=1))
            n_rows = len(model.embedding_)
            labels, weights = self._encoded(y, label_weights, n_rows)
            priors = self._checked_priors()
            self.held_out_ = _some_labels(labels, seed_of(self.random_state))
            rest = labels.copy()
            rest[self.held_out_] = -1
            scores = self._spread(model, [labels, rest], weights, priors)
            self.label_distributions_ = self._rules[0].probabilities(scores[0])
            found = self._rules[1].probabilities(scores[1][self.held_out_])
            self._held_out_scores = -found[np.arange(len(found)), labels[self.held_out_]]
            _warn_about_components(model, labels)
            self.model_, self._labels = model, labels
        self.transduction_ = self._most_probable(self.label_distributions_)
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
        return self._most_probable(self.predict_proba(X))

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
            warn_about_rare_classes(coverage)
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
        >>> found = HeatLabels().fit(X, y).suspects()
        >>> int(np.isin(found.rows[:20], wrong).sum())
        17
        """
        check_is_fitted(self)
        model, labels = self.model_._as_fitted(), self._labels
        A, order = model._training_operator("suspects"), model.order_
        exponent = VOTING_SHARPNESS if model.affinity == "gaussian" else 1
        W = link_weights(A, 1 / A.s, exponent=exponent)
        margins, rivals = label_margins(W, labels[order], len(self.classes_))
        places = np.argsort(order)
        margins, rivals = margins[places], rivals[places]
        known = np.flatnonzero(labels >= 0)
        rows = known[np.argsort(margins[known], kind="stable")]
        suggested = np.where(margins[rows] < 0, rivals[rows], labels[rows])
        return Suspects(rows, margins[rows], self.classes_[suggested])

    # --- the stages of a fit ----------------------------------------------------------------

    def _encoded(self, y: Any, label_weights: Any, n_rows: int) -> tuple[np.ndarray, Any]:
        """Find the classes; return class indices, -1 where unknown, and weights."""
        y = column_or_1d(y, warn=True)
        check_array(y, ensure_2d=False, dtype=None, input_name="y")
        unknown = str(self.unknown) if y.dtype.kind == "U" else self.unknown
        is_known = np.asarray(y != unknown)
        weights = None
        if label_weights is not None:
            weights = check_array(label_weights, ensure_2d=False, input_name="label_weights")
            if weights.shape != y.shape or (weights < 0).any():
                raise HeatSketchError(
                    f"label_weights={reprlib.repr(label_weights)} of shape {weights.shape} must be "
                    f"{len(y)} numbers of at least 0, one for each row of X."
                )
            is_known &= weights > 0
        if len(y) != n_rows or not is_known.any():
            raise HeatSketchError(
                f"y={reprlib.repr(y)} has {is_known.sum()} known labels for {n_rows} rows of X; "
                f"give one label for each row, {self.unknown!r} where unknown, and not everywhere."
            )
        check_classification_targets(y[is_known])
        labels = np.full(n_rows, -1)
        self.classes_, labels[is_known] = np.unique(y[is_known], return_inverse=True)
        return labels, weights

    def _checked_priors(self) -> Any:
        if self.priors is None:
            return None
        priors = check_array(self.priors, ensure_2d=False, input_name="priors")
        n_classes = len(self.classes_)
        if priors.shape != (n_classes,) or not (priors > 0).all() or abs(priors.sum() - 1) > 1e-6:
            raise HeatSketchError(
                f"priors={reprlib.repr(self.priors)} must be {n_classes} positive numbers that sum "
                f"to one, for the classes {reprlib.repr(self.classes_.tolist())}."
            )
        return priors

    def _spread(
        self, model: HeatEmbedding, labellings: list[np.ndarray], weights: Any, priors: Any
    ) -> list[np.ndarray]:
        """Propagate several labellings together; return scores in the order of ``X``."""
        A, order = model._training_operator("fit"), model.order_
        n_classes, exponent = len(self.classes_), _exponent(model)
        have_label = [np.bincount(some[some >= 0], minlength=n_classes) > 0 for some in labellings]
        sources = [
            label_sources(labels, n_classes, weights)[np.ix_(order, has_label)]
            for labels, has_label in zip(labellings, have_label, strict=True)
        ]
        links = link_weights(A, 1 / A.s, exponent=exponent)
        u, self.n_products_, *_ = potentials(links, np.hstack(sources))
        parts = np.split(u, [sources[0].shape[1]], axis=1)
        parts = [np.ascontiguousarray(part) for part in parts]
        scores = [
            model._in_given_order(neighbor_means(A, part, exponent=exponent)) for part in parts
        ]
        self._rules = tuple(map(_rule, parts, scores, [priors] * len(parts), have_label))
        return scores

    def _probabilities(self, X: Any, which: int) -> np.ndarray:
        check_is_fitted(self)
        X = check_numbers(self, X, reset=False)
        model, rule = self.model_._as_fitted(), self._rules[which]
        model.__dict__.pop("feature_names_in_", None)  # names were checked above
        exponent = _exponent(model)

        def scores(A: Any, *_: Any) -> np.ndarray:
            return neighbor_means(A, rule.potentials, exponent=exponent)

        return rule.probabilities(model._of_new_rows("predict", X, scores))

    def _most_probable(self, probabilities: np.ndarray) -> np.ndarray:
        return self.classes_[probabilities.argmax(axis=1)]

    # --- scikit-learn -------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "transduction_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        model = self.model
        tags.input_tags.pairwise = model is not None and "precomputed" in (
            model.metric,
            model.affinity,
        )
        return tags


def _rule(u: np.ndarray, scores: np.ndarray, priors: Any, has_label: np.ndarray) -> _Rule:
    scale = score_scale(scores)
    if priors is not None:
        priors = priors[has_label] / priors[has_label].sum()
    return _Rule(u, scale, class_weights(scores, scale, priors), has_label)


def _exponent(model: HeatEmbedding) -> float:
    return SHARPNESS if model.affinity == "gaussian" else 1


def _some_labels(labels: np.ndarray, seed: int) -> np.ndarray:
    """Return the rows of some labels, drawn at random from all, sorted.

    A share of each class would not be exchangeable with the other rows: each of its classes would
    also have labels that are not drawn.
    """
    known = np.random.default_rng(seed).permutation(np.flatnonzero(labels >= 0))
    return np.sort(known[: n_held_out(len(known))])


def _warn_about_components(model: HeatEmbedding, labels: np.ndarray) -> None:
    if model.n_connected_components_ > 1:
        components = model.component_labels_
        is_labelled = labels[model.order_] >= 0
        reached = np.isin(components, components[is_labelled])
        warn_about_unlabelled_components(int((~reached).sum()), len(reached))
