"""What can go wrong, by name.

::

    ValueError
     └─ HeatSketchError
         ├─ DtypeError (also a TypeError)   X holds something that is not a number
         ├─ MissingValueError               X holds NaN, infinity or a null
         ├─ ScaleError                      squared distances over- or underflow
         ├─ AffinityError                   not the affinity or distance matrix it should be
         ├─ DegenerateKernelError           most points see only themselves
         ├─ ScalingError                    no bistochastic normalization was reached
         ├─ SpectrumError                   a power that this spectrum does not have
         ├─ FileError (also an OSError)     a file that the system does not let us read or write
         │   └─ OutputError                  an output that cannot be written
         │       └─ OutputExistsError (also a FileExistsError)  one that must not be replaced
         ├─ FileFormatError                 a file that is not what it should be
         │   └─ ModelVersionError           a model file from a later heatsketch
         ├─ NotStorableError                a model that only pickle could keep
         ├─ TrainingDataError               a model that was saved without its training data
         └─ MemoryBudgetError (also a MemoryError)  would not fit, found before allocating
    UserWarning
     └─ HeatSketchWarning
         ├─ DegenerateKernelWarning         epsilon is far too small or far too large
         ├─ DisconnectedGraphWarning        the graph is not connected
         ├─ ZeroDiagonalWarning             a given affinity without self-loops
         ├─ FarPointWarning                 new points far from all training points
         └─ UnderflowWarning                the power is too large for the dtype

Every message names the argument, shows its value and gives a remedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

__all__ = [
    "AffinityError",
    "DegenerateKernelError",
    "DegenerateKernelWarning",
    "DisconnectedGraphWarning",
    "DtypeError",
    "FarPointWarning",
    "FileError",
    "FileFormatError",
    "HeatSketchError",
    "HeatSketchWarning",
    "MemoryBudgetError",
    "MissingValueError",
    "ModelVersionError",
    "NotStorableError",
    "OutputError",
    "OutputExistsError",
    "ScaleError",
    "ScalingError",
    "ScalingFailure",
    "SpectrumError",
    "TrainingDataError",
    "UnderflowWarning",
    "ZeroDiagonalWarning",
]


class HeatSketchError(ValueError):
    """An input that heatsketch cannot embed.

    Attributes
    ----------
    parameters : mapping of str to object
        The parameters that the message shows as ``name=value``, for programs that call them
        otherwise, as the command line does.
    """

    parameters: Mapping[str, Any] = {}

    def __init__(self, *args: object, **parameters: Any) -> None:
        super().__init__(*args)
        self.parameters = parameters


class DtypeError(HeatSketchError, TypeError):
    """An input that holds something other than real numbers."""


class MissingValueError(HeatSketchError):
    """An input with NaN, infinity or a null in it."""


class ScaleError(HeatSketchError):
    """Points whose squared distances leave the range of their dtype."""


class AffinityError(HeatSketchError):
    """A precomputed matrix that is not an affinity or distance matrix."""


class DegenerateKernelError(HeatSketchError):
    """A bandwidth so small that most points have no neighbour at all."""


class SpectrumError(HeatSketchError):
    """A power of the heat operator that its spectrum does not allow."""


class MemoryBudgetError(HeatSketchError, MemoryError):
    """A computation that would not fit in memory, rejected before it starts."""


class FileError(OSError, HeatSketchError):
    """A file that the system does not let us read or write.

    Made as every ``OSError`` is, ``FileError(errno, message, path)``; the message says it all.
    """

    def __str__(self) -> str:
        return str(self.strerror)


class OutputError(FileError):
    """An output that cannot be written where it was asked for."""


class OutputExistsError(OutputError, FileExistsError):
    """An output that exists already, and must not be replaced unasked."""

    parameters: Mapping[str, Any] = {"overwrite": True}


class FileFormatError(HeatSketchError):
    """A file that is not what it should be: damaged, hostile, or something else.

    Attributes
    ----------
    path : str
    cause : str
        What is wrong with it.
    remedy : str
    """

    def __init__(self, path: object, cause: str, remedy: str, **parameters: Any) -> None:
        super().__init__(str(path), cause, remedy, **parameters)
        self.path = str(path)
        self.cause = cause
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.path}: {self.cause}; {self.remedy}."


class ModelVersionError(FileFormatError):
    """A model file that only a later heatsketch can read."""


class NotStorableError(HeatSketchError):
    """A model with a part that no file but a pickle could keep."""


class TrainingDataError(HeatSketchError):
    """Something asked of a model that was saved without its training data."""


class ScalingFailure(StrEnum):
    """Why no bistochastic normalization was reached; the values are the remedies."""

    EMPTY_ROW = (
        "a row of K has no positive entry, so nothing can make it sum to one; "
        "keep the diagonal of K positive"
    )
    NOT_FINITE = "K has entries that are negative, not finite or beyond 1e100; correct or rescale K"
    DIVERGED = (
        "the scaling factors diverge: the zero pattern of K has no bistochastic "
        "scaling (a zero diagonal is the usual cause); add a positive diagonal to K, "
        'or use normalization="symmetric"'
    )
    SWEEPS_EXHAUSTED = (
        "the sweeps were used up: either the zero pattern of K has no bistochastic "
        "scaling (a zero diagonal is the usual cause; add a positive one), or K mixes "
        'slowly (raise max_iter of bistochastic_scaling); normalization="symmetric" always works'
    )


class ScalingError(HeatSketchError):
    """No diagonal scaling makes the rows of K sum to one.

    Attributes
    ----------
    reason : ScalingFailure
    residual : float
        Largest departure of a row sum from one when the search ended.
    n_iter : int
        Sweeps done.
    """

    def __init__(self, reason: ScalingFailure, residual: float, n_iter: int) -> None:
        super().__init__(reason, residual, n_iter)
        self.reason = reason
        self.residual = residual
        self.n_iter = n_iter

    def __str__(self) -> str:
        return (
            f"no scaling of K after {self.n_iter} sweeps "
            f"(row sums off by {self.residual:.3g}): {self.reason.value}."
        )


class HeatSketchWarning(UserWarning):
    """A result that is defined but may not be what was wanted.

    Attributes
    ----------
    parameters : mapping of str to object
        As for :class:`HeatSketchError`.
    """

    def __init__(self, *args: object, **parameters: Any) -> None:
        super().__init__(*args)
        self.parameters = parameters


class DegenerateKernelWarning(HeatSketchWarning):
    """A bandwidth far too small or far too large for the points."""


class DisconnectedGraphWarning(HeatSketchWarning):
    """A graph with several connected components."""


class ZeroDiagonalWarning(HeatSketchWarning):
    """A precomputed affinity without self-loops, whose walk may oscillate."""


class FarPointWarning(HeatSketchWarning):
    """New points so far away that only their nearest training point counts."""


class UnderflowWarning(HeatSketchWarning):
    """An embedding too small for its dtype, or its differences too small for its rows."""
