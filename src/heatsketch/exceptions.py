"""Exceptions and warnings.

::

    ValueError
     └─ HeatSketchError
         ├─ DtypeError (also a TypeError)   X holds something that is not a number
         ├─ MissingValueError               X holds NaN, infinity or a null
         ├─ ScaleError                      squared distances over- or underflow
         ├─ AffinityError                   not the affinity or distance matrix it should be
         ├─ DegenerateKernelError           most points have no neighbour but themselves
         ├─ ScalingError                    no bistochastic normalization was reached
         ├─ SpectrumError                   a power that this spectrum does not allow
         ├─ FileError (also an OSError)     a file that cannot be read or written
         │   └─ OutputError                  an output that cannot be written
         │       └─ OutputExistsError (also a FileExistsError)  one that must not be replaced
         ├─ FileFormatError                 a damaged or invalid file
         │   └─ ModelVersionError           a model file from a later heatsketch
         ├─ NotStorableError                a model that only pickle could store
         ├─ TrainingDataError               a sketch that was saved without its graph
         └─ MemoryBudgetError (also a MemoryError)  too little memory, found before allocating
    UserWarning
     └─ HeatSketchWarning
         ├─ DegenerateKernelWarning         epsilon is far too small or far too large
         ├─ DisconnectedGraphWarning        the graph is not connected
         ├─ ZeroDiagonalWarning             a given affinity without self-loops
         ├─ FarPointWarning                 new points far from all training points
         ├─ RareClassWarning                too few labels to tell classes apart with confidence
         ├─ SaturationWarning               heat spreads too slowly over a long graph
         ├─ AmbiguousRowWarning             new rows that equal those of several training nodes
         └─ UnderflowWarning                the power is too large for the dtype

Every message names the argument, shows its value and gives a remedy.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "AffinityError",
    "AmbiguousRowWarning",
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
    "RareClassWarning",
    "SaturationWarning",
    "ScaleError",
    "ScalingError",
    "ScalingFailure",
    "SpectrumError",
    "TrainingDataError",
    "UnderflowWarning",
    "ZeroDiagonalWarning",
]


class HeatSketchError(ValueError):
    """An input that heatsketch cannot embed."""


class DtypeError(HeatSketchError, TypeError):
    """An input with values that are not real numbers."""


class MissingValueError(HeatSketchError):
    """An input that contains NaN, infinity or a null."""


class ScaleError(HeatSketchError):
    """Points whose squared distances overflow or underflow their dtype."""


class AffinityError(HeatSketchError):
    """A precomputed matrix that is not an affinity or distance matrix."""


class DegenerateKernelError(HeatSketchError):
    """A bandwidth so small that most points have no neighbour at all."""


class SpectrumError(HeatSketchError):
    """A power of the heat operator that its spectrum does not allow."""


class MemoryBudgetError(HeatSketchError, MemoryError):
    """A computation that would not fit in memory, rejected before it starts."""


class FileError(OSError, HeatSketchError):
    """A file that cannot be read or written.

    Constructed like any ``OSError``: ``FileError(errno, message, path)``. ``str()`` returns the
    message alone.
    """

    def __str__(self) -> str:
        return str(self.strerror)


class OutputError(FileError):
    """An output that cannot be written to the given path."""


class OutputExistsError(OutputError, FileExistsError):
    """An output that already exists, without permission to replace it."""


class FileFormatError(HeatSketchError):
    """A file that is damaged, malicious or in another format.

    Attributes
    ----------
    path : str
    cause : str
        What is wrong with the file.
    remedy : str
    """

    def __init__(self, path: object, cause: str, remedy: str) -> None:
        super().__init__(str(path), cause, remedy)
        self.path = str(path)
        self.cause = cause
        self.remedy = remedy

    def __str__(self) -> str:
        end = "" if self.remedy.endswith("?") else "."
        return f"{self.path}: {self.cause}; {self.remedy}{end}"


class ModelVersionError(FileFormatError):
    """A model file that only a later version of heatsketch can read."""


class NotStorableError(HeatSketchError):
    """A model with a part that only a pickle could store."""


class TrainingDataError(HeatSketchError):
    """A method that needs the graph, without which the sketch was saved."""


class ScalingFailure(StrEnum):
    """Cause of a failed bistochastic normalization; the values include remedies."""

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
        Largest deviation of a row sum from one when the iteration stopped.
    n_iter : int
        Number of sweeps.
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
    """A result that is well defined but may not be what was intended."""


class DegenerateKernelWarning(HeatSketchWarning):
    """A bandwidth far too small or far too large for the points."""


class DisconnectedGraphWarning(HeatSketchWarning):
    """A graph with several connected components."""


class ZeroDiagonalWarning(HeatSketchWarning):
    """A precomputed affinity without self-loops, on which a walk may oscillate."""


class FarPointWarning(HeatSketchWarning):
    """New points so far from the training points that only the nearest counts."""


class RareClassWarning(HeatSketchWarning):
    """Sets that must hold all classes, since many classes have too few labels."""


class SaturationWarning(HeatSketchWarning):
    """A graph so long that distances along it saturate."""


class AmbiguousRowWarning(HeatSketchWarning):
    """New rows of a graph that equal the rows of several training nodes."""


class UnderflowWarning(HeatSketchWarning):
    """An embedding, or differences between its rows, too small for the dtype."""
