"""The paper's experiments, as data, and some of them with additional methods.

The paper gives all parameters except those of the Gaussian point clouds, which are chosen here:
three clouds of a hundred points in three dimensions, variance one, centres four apart. Maps of
least distortion take seconds each: their experiments have fewer trials, and their own names and
therefore samples.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from paper import datasets


@dataclass(frozen=True)
class Experiment:
    """Many trials of several methods on one kind of data.

    Attributes
    ----------
    title : str
    sampler : callable
        ``(n_points, seed=...) -> X``.
    n_points, trials : int
    epsilon : float
    dimensions, powers : tuples of int
        One of the two has a single entry, and the other is the horizontal axis.
    figures : mapping of str to tuple of str
        File name of each figure, and the methods that it shows.
    distance : {"diffusion", "euclidean"}
        Distance relative to which distortion is measured; the diffusion distance is that of the
        current normalization and power.
    measures : mapping of str to callable
        Additional measures: ``Y -> float``, for each method at the first point of the grid.
    """

    title: str
    sampler: Callable[..., np.ndarray]
    n_points: int
    trials: int
    epsilon: float
    dimensions: tuple[int, ...]
    powers: tuple[int, ...]
    figures: Mapping[str, tuple[str, ...]]
    distance: str = "diffusion"
    measures: Mapping[str, Callable[[np.ndarray], float]] = field(default_factory=dict)

    @property
    def grid(self) -> list[tuple[int, int]]:
        """Pairs of dimension and power."""
        return [(k, power) for k in self.dimensions for power in self.powers]

    @property
    def axis(self) -> tuple[int, ...]:
        """The values that vary: the dimensions, or the powers."""
        return self.dimensions if self.letter == "k" else self.powers

    @property
    def letter(self) -> str:
        """The paper's letter for the axis."""
        return "k" if len(self.dimensions) > 1 else "p"

    @property
    def methods(self) -> tuple[str, ...]:
        """All methods of all figures."""
        return tuple(dict.fromkeys(name for names in self.figures.values() for name in names))


@dataclass(frozen=True)
class Portrait:
    """A sample embedding to plot; ``hide`` is a number of last points that are not drawn."""

    title: str
    experiment: str
    method: str
    trial: int = 0
    hide: int = 0


def circle_over_outliers(Y: np.ndarray) -> float:
    """Circle diameter over the distance of the nearer outlier, which is 2 / 3 in the data."""
    points, outliers = Y[:-2], Y[-2:]
    center = points.mean(axis=0)
    diameter = 2 * np.linalg.norm(points - center, axis=1).max()
    return float(diameter / np.linalg.norm(outliers - center, axis=1).min())


FOUR = ("DMS", "DMB", "GPS", "GPB")
PROCESSES = ("GPS", "GPB", "GPSBS", "GPSBB")

PAPER = {
    "circle": Experiment(
        title="Circle",
        sampler=datasets.circle,
        n_points=300,
        trials=200,
        epsilon=0.25,
        dimensions=tuple(range(2, 9)),
        powers=(8,),
        figures={"circle": FOUR},
    ),
    "torus": Experiment(
        title="Torus stretched by 3.5",
        sampler=datasets.stretched_torus,
        n_points=500,
        trials=100,
        epsilon=0.3,
        dimensions=tuple(range(2, 13)),
        powers=(10,),
        figures={"torus": FOUR},
    ),
    "klein": Experiment(
        title="Klein bottle",
        sampler=datasets.klein_bottle,
        n_points=500,
        trials=100,
        epsilon=2.0,
        dimensions=tuple(range(3, 21)),
        powers=(4,),
        figures={"klein": FOUR, "klein-signs": PROCESSES},
    ),
    "outliers": Experiment(
        title="Circle and two outliers",
        sampler=datasets.circle_with_outliers,
        n_points=200,
        trials=100,
        epsilon=0.5,
        dimensions=tuple(range(2, 6)),
        powers=(4,),
        figures={"outliers": FOUR},
        measures={"circle over outliers": circle_over_outliers},
    ),
    "clouds": Experiment(
        title="Gaussian point clouds",
        sampler=datasets.gaussian_clouds,
        n_points=300,
        trials=100,
        epsilon=4.0,
        dimensions=tuple(range(2, 13)),
        powers=(4,),
        figures={"clouds-signs": PROCESSES},
        distance="euclidean",
    ),
    "multiscale-torus": Experiment(
        title="Torus stretched by 3.5, all scales",
        sampler=datasets.stretched_torus,
        n_points=500,
        trials=100,
        epsilon=0.3,
        dimensions=(8,),
        powers=tuple(2**i for i in range(1, 11)),
        figures={"multiscale-torus": ("DMS", "GPS")},
        distance="euclidean",
    ),
    "multiscale-circle": Experiment(
        title="Circle, all scales",
        sampler=datasets.circle,
        n_points=300,
        trials=100,
        epsilon=0.25,
        dimensions=(2,),
        powers=tuple(2**i for i in range(1, 9)),
        figures={"multiscale-circle": ("DMS", "GPS")},
        distance="euclidean",
    ),
}

AGAINST_ISOMETRIES = {
    "symmetric": ("DMS", "GPS", "NIS", "NISW"),
    "bistochastic": ("DMB", "GPB", "NIB"),
}
ISOMETRIES = {
    f"{name}-isometry-{kind}": replace(
        PAPER[name], trials=20, figures={f"{name}-isometry-{kind}": methods}
    )
    for kind, methods in AGAINST_ISOMETRIES.items()
    for name in ("circle", "torus", "klein", "outliers")
}

CATALOGUE = PAPER | ISOMETRIES

PORTRAITS = {
    "circle-sample": Portrait("Circle by GPS, k = 2", "circle", "GPS"),
    "outliers-sample-map": Portrait("Circle and outliers by DMS, k = 2", "outliers", "DMS"),
    "outliers-sample-map-hidden": Portrait("The same, outliers removed", "outliers", "DMS", hide=2),
    "outliers-sample-1": Portrait("Circle and outliers by GPS, k = 2", "outliers", "GPS"),
    "outliers-sample-2": Portrait("Another sample", "outliers", "GPS", trial=1),
    "outliers-sample-3": Portrait("And another", "outliers", "GPS", trial=2),
}
