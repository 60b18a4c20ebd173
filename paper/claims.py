r"""Statements of the paper's experiments, with a test, a number and a verdict.

Trials share their samples, so methods are compared by paired differences of :math:`\log L`, with
95 % Student's t intervals, simultaneous over the points of a claim (Bonferroni).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import stats

from paper.runner import Results


class Finding(NamedTuple):
    """One number with its interval, and whether it agrees with the claim.

    ``agrees`` is 1 if the whole interval agrees, -1 if none of it does, else 0; ``margin`` is the
    distance of the nearer end of the interval from the side that disagrees.
    """

    where: str
    value: float
    low: float
    high: float
    agrees: int
    margin: float


class Claim(NamedTuple):
    """A statement of the paper.

    Attributes
    ----------
    statement : str
        Paraphrased.
    experiments : tuple of str
        Experiments whose results the test takes.
    number : str
        Description of the number.
    test : callable
        ``(results, ...) -> findings``.
    note : str
        Why the claim fails or holds in part, as far as known from all trials of the paper; it does
        not apply to fewer trials.
    """

    statement: str
    experiments: tuple[str, ...]
    number: str
    test: Callable[..., list[Finding]]
    note: str = ""


class Verdict(NamedTuple):
    """Verdict on a claim, with the finding nearest to failing and point counts."""

    claim: Claim
    word: str
    worst: Finding
    n_agree: int
    n_points: int


def judge(claims: Iterable[Claim], results: Mapping[str, Results]) -> list[Verdict]:
    """Judge the claims whose experiments have been run."""
    return [
        _verdict(claim, claim.test(*(results[name] for name in claim.experiments)))
        for claim in claims
        if all(name in results for name in claim.experiments)
    ]


def _verdict(claim: Claim, findings: Sequence[Finding]) -> Verdict:
    signs = [finding.agrees for finding in findings]
    n_agree, n_against = signs.count(1), signs.count(-1)
    if n_agree == len(signs):
        word = "holds"
    elif n_agree and (n_against or 2 * n_agree > len(signs)):
        word = "holds in part"
    elif n_against:
        word = "does not hold"
    else:  # nothing contradicts, but at most half of the points agree
        word = "undecided"
    worst = min(findings, key=lambda finding: (finding.agrees, finding.margin))
    return Verdict(claim, word, worst, n_agree, len(signs))


# --- the tests ------------------------------------------------------------------------------


def _interval(values: np.ndarray, n_points: int = 1) -> tuple[float, float, float]:
    """Mean over trials, with a simultaneous interval for ``n_points`` such means."""
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    half = float(stats.t.ppf(1 - 0.025 / n_points, max(len(values) - 1, 1))) * error
    return mean, mean - half, mean + half


def _positive(where: str, mean: float, low: float, high: float) -> Finding:
    return Finding(where, mean, low, high, int(low > 0) - int(high < 0), low)


def _between(
    where: str, value: float, low: float, high: float, *, bounds: tuple[float, float]
) -> Finding:
    slack = min(low - bounds[0], bounds[1] - high)
    outside = high < bounds[0] or low > bounds[1]
    return Finding(where, value, low, high, int(slack > 0) - int(outside), slack)


def _at(results: Results, method: str, point: int) -> np.ndarray:
    return results.log_L(method)[:, results.experiment.axis.index(point)]


def _lead(results: Results, better: str, worse: str, point: int) -> np.ndarray:
    """Lead of ``better`` in log L in each trial, at one point of the axis."""
    return _at(results, worse, point) - _at(results, better, point)


def ahead(
    results: Results, *, better: str, worse: str, at: Sequence[int] | None = None
) -> list[Finding]:
    """Test that ``better`` has the smaller log L, at each point."""
    points = at or results.experiment.axis
    return [
        _positive(
            f"{results.experiment.letter} = {point}",
            *_interval(_lead(results, better, worse, point), len(points)),
        )
        for point in points
    ]


def both_ahead(
    results: Results, *, pairs: Sequence[tuple[str, str]], at: Sequence[int]
) -> list[Finding]:
    """Test that the first of each pair has the smaller log L, at each point."""
    return [
        finding._replace(where=f"{better} over {worse}, {finding.where}")
        for better, worse in pairs
        for finding in ahead(results, better=better, worse=worse, at=at)
    ]


def alike(
    results: Results, *, pairs: Sequence[tuple[str, str]], margin: float, at: Sequence[int]
) -> list[Finding]:
    """Test that the methods of each pair differ by less than a margin."""
    return [
        _between(
            f"{second} - {first}, {results.experiment.letter} = {point}",
            *_interval(_lead(results, first, second, point), len(at) * len(pairs)),
            bounds=(-margin, margin),
        )
        for first, second in pairs
        for point in at
    ]


def shrinks(results: Results, *, better: str, worse: str, early: int, late: int) -> list[Finding]:
    """Test that the lead of ``better`` is smaller late than early."""
    loss = _lead(results, better, worse, early) - _lead(results, better, worse, late)
    return [_positive(f"{results.experiment.letter} = {early} against {late}", *_interval(loss))]


def rises(results: Results, *, method: str, at: Sequence[int]) -> list[Finding]:
    """Test that log L grows from each point to the next."""
    return [
        _positive(
            f"{results.experiment.letter} = {first} to {second}",
            *_interval(_at(results, method, second) - _at(results, method, first), len(at) - 1),
        )
        for first, second in pairwise(at)
    ]


def level(
    results: Results, *, method: str, at: Sequence[int], between: tuple[float, float]
) -> list[Finding]:
    """Test that the geometric mean of L is between two numbers, at each point."""
    return [
        _between(
            f"{results.experiment.letter} = {point}",
            *map(float, np.exp(_interval(_at(results, method, point), len(at)))),
            bounds=between,
        )
        for point in at
    ]


def wider(first: Results, second: Results, *, better: str, worse: str) -> list[Finding]:
    """Test that the lead of ``better``, mean over points, is larger on ``first``."""
    points = sorted(set(first.experiment.axis) & set(second.experiment.axis))
    large, small = (
        np.mean([_lead(results, better, worse, point) for point in points], axis=0)
        for results in (first, second)
    )
    low, high = stats.ttest_ind(large, small, equal_var=False).confidence_interval(0.95)
    value = float(large.mean() - small.mean())
    return [_positive(f"mean over k = {points[0]} to {points[-1]}", value, low, high)]


def below(results: Results, *, measure: str, method: str, bound: float) -> list[Finding]:
    """Test that an additional measure is below a bound."""
    interval = _interval(results.measure(measure, method))
    return [_between(method, *interval, bounds=(-np.inf, bound))]


def torus_separation(n_eigenfunctions: int, stretch: float = 3.5) -> float:
    """Distance of (x, y) and (-x, y) of the stretched torus in the exact map.

    The eigenfunctions are products of cos and sin of ``m x`` and ``n y / r``, with eigenvalue
    ``m**2 + (n / r)**2``; only those odd in ``x``, with ``sin m x``, separate the two points.
    """
    waves = sorted(
        (m**2 + (n / stretch) ** 2, m, n, odd_in_x)
        for m in range(4)
        for n in range(int(4 * stretch))
        for odd_in_x in ((False, True) if m else (False,))
        for _ in range(2 if n else 1)  # cosine and sine of n y / r
        if (m, n) != (0, 0)
    )
    x = np.pi / 2
    odd = [np.sin(m * x) for _, m, _, odd_in_x in waves[:n_eigenfunctions] if odd_in_x]
    return float(2 * np.linalg.norm(odd)) if odd else 0.0


def theory_collides(*, at: Sequence[int]) -> list[Finding]:
    """Test that two points of the torus have one image by exact eigenfunctions."""
    distances = {k: torus_separation(k) for k in at}
    return [
        Finding(f"k = {k}", value, value, value, 1 if value == 0 else -1, -value)
        for k, value in distances.items()
    ]


# --- the paper, sentence by sentence ---------------------------------------------------------

_LEAD = "lead in log L"

CLAIMS = (
    Claim(
        "Circle: DMS beats GPS at every k.",
        ("circle",),
        _LEAD,
        partial(ahead, better="DMS", worse="GPS"),
    ),
    Claim(
        "Circle: in higher dimensions GPS reaches an L of about 3 (here: between 2 and 4).",
        ("circle",),
        "L",
        partial(level, method="GPS", at=(5, 6, 7, 8), between=(2, 4)),
    ),
    Claim(
        "Circle: in the plane GPS is not effective (here: L above 10).",
        ("circle",),
        "L",
        partial(level, method="GPS", at=(2,), between=(10, np.inf)),
    ),
    Claim(
        "Torus: at k = 2 all methods struggle about equally (here: within 1 in log L).",
        ("torus",),
        "difference in log L",
        partial(
            alike,
            pairs=(("DMS", "GPS"), ("DMB", "GPB"), ("DMS", "DMB"), ("GPS", "GPB")),
            margin=1.0,
            at=(2,),
        ),
        note=(
            "DMB is behind DMS at k = 2 already. Two eigenfunctions depend on the long circle "
            "only, so that points of the short one are separated by sampling noise in the "
            "eigenvectors, of which the bistochastic ones have less. The paper suggests the same "
            "for the larger k."
        ),
    ),
    Claim(
        "Torus: from k = 3 on GPS is ahead of DMS.",
        ("torus",),
        _LEAD,
        partial(ahead, better="GPS", worse="DMS", at=tuple(range(3, 13))),
    ),
    Claim(
        "Torus: from k = 3 on GPB is ahead of DMB.",
        ("torus",),
        _LEAD,
        partial(ahead, better="GPB", worse="DMB", at=tuple(range(3, 13))),
    ),
    Claim(
        "Torus: in higher dimensions diffusion maps catch up.",
        ("torus",),
        "loss of lead",
        partial(shrinks, better="GPS", worse="DMS", early=6, late=12),
    ),
    Claim(
        "Torus: DMB fares worse than DMS.",
        ("torus",),
        _LEAD,
        partial(ahead, better="DMS", worse="DMB"),
    ),
    Claim(
        "Torus: by theory, diffusion maps struggle for k <= 7; GPS is ahead there.",
        ("torus",),
        _LEAD,
        partial(ahead, better="GPS", worse="DMS", at=tuple(range(3, 8))),
    ),
    Claim(
        "Torus: with exact eigenfunctions a diffusion map is not one-to-one for "
        "k <= 2 floor(r) + 1 = 7 (erratum E14).",
        (),
        "distance of two images",
        partial(theory_collides, at=(2, 3, 4, 5, 6, 7)),
    ),
    Claim(
        "Klein bottle: GPS is ahead of DMS at every k.",
        ("klein",),
        _LEAD,
        partial(ahead, better="GPS", worse="DMS"),
    ),
    Claim(
        "Klein bottle: DMB fares worse than DMS.",
        ("klein",),
        _LEAD,
        partial(ahead, better="DMS", worse="DMB"),
    ),
    Claim(
        "Klein bottle: the same as the torus, and more extreme.",
        ("klein", "torus"),
        "difference of leads of GPS over DMS",
        partial(wider, better="GPS", worse="DMS"),
    ),
    Claim(
        "Outliers: the Gaussian processes are ahead at k = 2 and 3.",
        ("outliers",),
        _LEAD,
        partial(both_ahead, pairs=(("GPS", "DMS"), ("GPB", "DMB")), at=(2, 3)),
    ),
    Claim(
        "Outliers: diffusion maps are ahead at k = 4 and 5.",
        ("outliers",),
        _LEAD,
        partial(both_ahead, pairs=(("DMS", "GPS"), ("DMB", "GPB")), at=(4, 5)),
    ),
    Claim(
        "Outliers: under DMS at k = 2 the 198 points collapse (here: the circle's diameter is "
        "below a tenth of the distance of the outliers).",
        ("outliers",),
        "diameter over distance",
        partial(below, measure="circle over outliers", method="DMS", bound=0.1),
    ),
    Claim(
        "Klein bottle: random signs are as good as Gaussians (here: within 0.25 in log L).",
        ("klein",),
        "difference in log L",
        partial(
            alike,
            pairs=(("GPS", "GPSBS"), ("GPB", "GPSBB")),
            margin=0.25,
            at=tuple(range(3, 21)),
        ),
        note="the exceptions are at k = 3, where random signs are rather better than Gaussians.",
    ),
    Claim(
        "Point clouds: random signs are as good as Gaussians (here: within 0.25 in log L).",
        ("clouds",),
        "difference in log L",
        partial(
            alike,
            pairs=(("GPS", "GPSBS"), ("GPB", "GPSBB")),
            margin=0.25,
            at=tuple(range(2, 13)),
        ),
        note=(
            "no difference is found at any k, but at small k log L scatters so much that "
            "these trials cannot bound it by 0.25."
        ),
    ),
    Claim(
        "Klein bottle: with the bistochastic normalization GPSBB is a little better than GPB.",
        ("klein",),
        _LEAD,
        partial(ahead, better="GPSBB", worse="GPB"),
        note=(
            "signs are never behind beyond noise, and there is a reason for a small lead: a "
            "squared distance has variance 2 d^4 / k with Gaussians, and 2 (d^4 - sum_l (a_il "
            "- a_jl)^4) / k with signs. On the Klein bottle heat reaches few points, and the "
            "fourth powers take more than a tenth of d^4 for most pairs."
        ),
    ),
    Claim(
        "Point clouds: with the bistochastic normalization GPSBB is a little better than GPB.",
        ("clouds",),
        _LEAD,
        partial(ahead, better="GPSBB", worse="GPB"),
        note=(
            "heat spreads over many points here, the fourth powers are below a hundredth of "
            "d^4 for most pairs, and the two random matrices give the same results."
        ),
    ),
    Claim(
        "Torus, all scales: at low powers GPS struggles nearly as much as DMS (here: within 1 "
        "in log L at p = 2, 4).",
        ("multiscale-torus",),
        "difference in log L",
        partial(alike, pairs=(("GPS", "DMS"),), margin=1.0, at=(2, 4)),
    ),
    Claim(
        "Torus, all scales: GPS is clearly ahead at p = 16 and 32.",
        ("multiscale-torus",),
        _LEAD,
        partial(ahead, better="GPS", worse="DMS", at=(16, 32)),
    ),
    Claim(
        "Torus, all scales: as p grows on, GPS gets worse and worse.",
        ("multiscale-torus",),
        "step in log L",
        partial(rises, method="GPS", at=(32, 64, 128, 256, 512, 1024)),
    ),
    Claim(
        "Torus, all scales: in the end GPS is behind DMS.",
        ("multiscale-torus",),
        _LEAD,
        partial(ahead, better="DMS", worse="GPS", at=(1024,)),
    ),
    Claim(
        "Circle, all scales: DMS is ahead at every power.",
        ("multiscale-circle",),
        _LEAD,
        partial(ahead, better="DMS", worse="GPS"),
    ),
)
