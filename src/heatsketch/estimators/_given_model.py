"""The parameter ``model`` of the other estimators, fitted or not."""

from __future__ import annotations

from typing import Any

from heatsketch.estimators._base import HeatEmbedding, clone
from heatsketch.estimators._validation import check_numbers
from heatsketch.exceptions import HeatSketchError


def fitted_model(estimator: Any, X: Any, default: HeatEmbedding) -> HeatEmbedding:
    """Return ``estimator.model`` if it is fitted, else a clone fitted to ``X``.

    The clone is that of a default if ``estimator.model`` is None. A fitted model must have been
    fitted to ``X``, or ``X`` must be None.
    """
    model = estimator.model
    is_fitted = model is not None and model.__sklearn_is_fitted__()
    if X is None and is_fitted:
        estimator.n_features_in_ = model.n_features_in_
        estimator.__dict__.pop("feature_names_in_", None)
        if hasattr(model, "feature_names_in_"):
            estimator.feature_names_in_ = model.feature_names_in_
        return model._as_fitted()
    X = check_numbers(estimator, X, reset=True)
    if not is_fitted:
        model = default if model is None else clone(model)
        return model.set_params(n_jobs=estimator.n_jobs, verbose=estimator.verbose).fit(X)
    if not model._as_fitted()._is_fitted_to(X):
        raise HeatSketchError(
            f"model={model!r} was fitted to other rows than those of X; fit it to X, or pass "
            "X=None."
        )
    return model._as_fitted()
