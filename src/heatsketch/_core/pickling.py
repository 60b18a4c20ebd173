"""State of objects as plain arrays, for pickle and similar formats.

Formats that execute no code, such as that of skops, support numeric arrays but not the sparse
arrays of scipy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scipy import sparse


def plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state with CSR arrays split into plain arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from heatsketch._core.pickling import from_plain, plain
    >>> state = plain({"matrix": sparse.csr_array(np.eye(2))})
    >>> sorted(state["matrix"])
    ['csr', 'shape']
    >>> from_plain(state)["matrix"].toarray()
    array([[1., 0.],
           [0., 1.]])
    """
    return {name: _apart(value) for name, value in state.items()}


def from_plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state that was passed to :func:`plain`."""
    return {name: _together(value) for name, value in state.items()}


def _apart(value: Any) -> Any:
    if not isinstance(value, sparse.csr_array):
        return value
    return {"csr": (value.data, value.indices, value.indptr), "shape": value.shape}


def _together(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return sparse.csr_array(tuple(value["csr"]), shape=tuple(value["shape"]))
