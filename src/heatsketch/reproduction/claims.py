r"""Statements of the paper's experiments, with a test, a number and a verdict.

Trials share their samples, so methods are compared by paired differences of :math:`\log L`, with
95 % Student's t intervals, simultaneous over the points of a claim (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import stats

from heatsketch.reproduction.runner import Results

__all__ = ["CLAIMS", "Claim", "Finding", "Verdict", "judge"]


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


Found = Mapping[str, Results]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper.

    Attributes
    ----------
    says : str
        The statement, paraphrased.
    experiments : tuple of str
        Experiments that must have been run.
    number : str
        Description of the number.
    test : callable
        ``results by name -> findings``.
    note : str
        Why the claim fails or holds in part, as far as known from all trials of the paper; it does
        not apply to fewer trials.
    """

    says: str
    experiments: tuple[str, ...]
    number: str
    test: Callable[[Found], list[Finding]]
    note: str = ""


class Verdict(NamedTuple):
    """Verdict on a claim, with the finding nearest to failing and point counts."""

    claim: Claim
    word: str
    worst: Finding
    n_agree: int
    n_points: int


def judge(claims: Iterable[Claim], results: Found) -> list[Verdict]:
    """Judge the claims whose experiments have been run."""
    return [
        _verdict(claim, claim.test(results))
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


def _interval(values: np.ndarray, n_points: int) -> tuple[float, float, float]:
    """Mean over trials, with a simultaneous interval for ``n_points`` such means."""
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    half = float(stats.t.ppf(1 - 0.025 / n_points, max(len(values) - 1, 1))) * error
    return mean, mean - half, mean + half


def _positive(where: str, values: np.ndarray, n_points: int) -> Finding:
    mean, low, high = _interval(values, n_points)
    return Finding(where, mean, low, high, int(low > 0) - int(high < 0), low)


def _gap(results: Results, better: str, worse: str, at: int) -> np.ndarray:
    """Lead of ``better`` in log L in each trial, at one point of the axis."""
    column = results.experiment.axis.index(at)
    return results.log_L(worse)[:, column] - results.log_L(better)[:, column]


def ahead(
    found: Found, name: str, better: str, worse: str, at: Sequence[int] | None = None
) -> list[Finding]:
    """Test that ``better`` has the smaller log L, at each point."""
    results = found[name]
    points = results.experiment.axis if at is None else at
    letter = results.experiment.axis_name
    return [
        _positive(f"{letter} = {point}", _gap(results, better, worse, point), len(points))
        for point in points
    ]


def both_ahead(
    found: Found, name: str, pairs: Sequence[tuple[str, str]], at: Sequence[int]
) -> list[Finding]:
    """Test that the first of each pair has the smaller log L, at each point."""
    return [
        finding._replace(where=f"{better} over {worse}, {finding.where}")
        for better, worse in pairs
        for finding in ahead(found, name, better, worse, at)
    ]


def alike(
    found: Found, name: str, pairs: Sequence[tuple[str, str]], margin: float, at: Sequence[int]
) -> list[Finding]:
    """Test that the methods of each pair differ by less than a margin."""
    results = found[name]
    findings = []
    for first, second in pairs:
        for point in at:
            gap = _gap(results, first, second, point)
            mean, low, high = _interval(gap, len(at) * len(pairs))
            slack, beyond = margin - max(-low, high), low > margin or high < -margin
            where = f"{second} - {first}, {results.experiment.axis_name} = {point}"
            findings.append(Finding(where, mean, low, high, int(slack > 0) - int(beyond), slack))
    return findings


def shrinks(
    found: Found, name: str, better: str, worse: str, *, early: int, late: int
) -> list[Finding]:
    """Test that the lead of ``better`` is smaller late than early."""
    results = found[name]
    loss = _gap(results, better, worse, early) - _gap(results, better, worse, late)
    letter = results.experiment.axis_name
    return [_positive(f"{letter} = {early} against {late}", loss, 1)]


def rises(found: Found, name: str, method: str, at: Sequence[int]) -> list[Finding]:
    """Test that log L grows from each point to the next."""
    results = found[name]
    columns = [results.experiment.axis.index(point) for point in at]
    steps = np.diff(results.log_L(method)[:, columns], axis=1)
    letter = results.experiment.axis_name
    return [
        _positive(f"{letter} = {first} to {second}", step, len(steps.T))
        for first, second, step in zip(at, at[1:], steps.T, strict=False)
    ]


def level(
    found: Found, name: str, method: str, at: Sequence[int], between: tuple[float, float]
) -> list[Finding]:
    """Test that the geometric mean of L is between two numbers, at each point."""
    results = found[name]
    findings = []
    for point in at:
        column = results.experiment.axis.index(point)
        value, low, high = np.exp(_interval(results.log_L(method)[:, column], len(at)))
        slack = min(low - between[0], between[1] - high)
        outside = high < between[0] or low > between[1]
        where = f"{results.experiment.axis_name} = {point}"
        findings.append(Finding(where, value, low, high, int(slack > 0) - int(outside), slack))
    return findings


def wider(found: Found, first: str, second: str, better: str, worse: str) -> list[Finding]:
    """Test that the lead of ``better``, mean over points, is larger on ``first``."""
    points = sorted(set(found[first].experiment.axis) & set(found[second].experiment.axis))
    large, small = (
        np.mean([_gap(found[name], better, worse, point) for point in points], axis=0)
        for name in (first, second)
    )
    test = stats.ttest_ind(large, small, equal_var=False)
    low, high = test.confidence_interval(0.95)
    value = float(large.mean() - small.mean())
    where = f"mean over k = {points[0]} to {points[-1]}"
    return [Finding(where, value, low, high, int(low > 0) - int(high < 0), low)]


def below(found: Found, name: str, measure: str, method: str, bound: float) -> list[Finding]:
    """Test that an additional measure is below a bound."""
    value, low, high = _interval(found[name].measure(measure, method), 1)
    agrees = int(high < bound) - int(low > bound)
    return [Finding(method, value, low, high, agrees, bound - high)]


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


def theory_collides(found: Found, at: Sequence[int]) -> list[Finding]:
    """Test that two points of the torus have one image by exact eigenfunctions."""
    distances = [torus_separation(k) for k in at]
    return [
        Finding(f"k = {k}", value, value, value, 1 if value == 0 else -1, -value)
        for k, value in zip(at, distances, strict=True)
    ]


# --- the paper, sentence by sentence ---------------------------------------------------------

_LEAD = "lead in log L"

CLAIMS = (
    Claim(
        "Circle: DMS beats GPS at every k.",
        ("circle",),
        _LEAD,
        partial(ahead, name="circle", better="DMS", worse="GPS"),
    ),
    Claim(
        "Circle: in higher dimensions GPS reaches an L of about 3 (here: between 2 and 4).",
        ("circle",),
        "L",
        partial(level, name="circle", method="GPS", at=(5, 6, 7, 8), between=(2, 4)),
    ),
    Claim(
        "Circle: in the plane GPS is not effective (here: L above 10).",
        ("circle",),
        "L",
        partial(level, name="circle", method="GPS", at=(2,), between=(10, np.inf)),
    ),
    Claim(
        "Torus: at k = 2 all methods struggle about equally (here: within 1 in log L).",
        ("torus",),
        "difference in log L",
        partial(
            alike,
            name="torus",
            pairs=(("DMS", "GPS"), ("DMB", "GPB"), ("DMS", "DMB"), ("GPS", "GPB")),
            margin=1.0,
            at=(2,),
        ),
        note=(
            "DMB is behind DMS at k = 2 already. Two eigenfunctions see the long circle only; "
            "what separates the points of the short one is sampling noise in the "
            "eigenvectors, and the bistochastic ones have less of it. The paper suggests the "
            "same for the larger k."
        ),
    ),
    Claim(
        "Torus: from k = 3 on GPS is ahead of DMS.",
        ("torus",),
        _LEAD,
        partial(ahead, name="torus", better="GPS", worse="DMS", at=tuple(range(3, 13))),
    ),
    Claim(
        "Torus: from k = 3 on GPB is ahead of DMB.",
        ("torus",),
        _LEAD,
        partial(ahead, name="torus", better="GPB", worse="DMB", at=tuple(range(3, 13))),
    ),
    Claim(
        "Torus: in higher dimensions diffusion maps catch up.",
        ("torus",),
        "loss of lead",
        partial(shrinks, name="torus", better="GPS", worse="DMS", early=6, late=12),
    ),
    Claim(
        "Torus: DMB fares worse than DMS.",
        ("torus",),
        _LEAD,
        partial(ahead, name="torus", better="DMS", worse="DMB"),
    ),
    Claim(
        "Torus: theory says that diffusion maps struggle for k <= 7; GPS is ahead there.",
        ("torus",),
        _LEAD,
        partial(ahead, name="torus", better="GPS", worse="DMS", at=tuple(range(3, 8))),
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
        partial(ahead, name="klein", better="GPS", worse="DMS"),
    ),
    Claim(
        "Klein bottle: DMB fares worse than DMS.",
        ("klein",),
        _LEAD,
        partial(ahead, name="klein", better="DMS", worse="DMB"),
    ),
    Claim(
        "Klein bottle: the same as the torus, and more extreme.",
        ("klein", "torus"),
        "difference of leads of GPS over DMS",
        partial(wider, first="klein", second="torus", better="GPS", worse="DMS"),
    ),
    Claim(
        "Outliers: the Gaussian processes are ahead at k = 2 and 3.",
        ("outliers",),
        _LEAD,
        partial(both_ahead, name="outliers", pairs=(("GPS", "DMS"), ("GPB", "DMB")), at=(2, 3)),
    ),
    Claim(
        "Outliers: diffusion maps are ahead at k = 4 and 5.",
        ("outliers",),
        _LEAD,
        partial(both_ahead, name="outliers", pairs=(("DMS", "GPS"), ("DMB", "GPB")), at=(4, 5)),
    ),
    Claim(
        "Outliers: under DMS at k = 2 the 198 points collapse (here: the circle's diameter is "
        "below a tenth of the distance of the outliers).",
        ("outliers",),
        "diameter over distance",
        partial(below, name="outliers", measure="circle over outliers", method="DMS", bound=0.1),
    ),
    Claim(
        "Klein bottle: random signs are as good as Gaussians (here: within 0.25 in log L).",
        ("klein",),
        "difference in log L",
        partial(
            alike,
            name="klein",
            pairs=(("GPS", "GPSBS"), ("GPB", "GPSBB")),
            margin=0.25,
            at=tuple(range(3, 21)),
        ),
        note=("the points that fall out are at k = 3, where the signs are, if anything, better."),
    ),
    Claim(
        "Point clouds: random signs are as good as Gaussians (here: within 0.25 in log L).",
        ("clouds",),
        "difference in log L",
        partial(
            alike,
            name="clouds",
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
        partial(ahead, name="klein", better="GPSBB", worse="GPB"),
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
        partial(ahead, name="clouds", better="GPSBB", worse="GPB"),
        note=(
            "heat spreads over many points here, the fourth powers are below a hundredth of "
            "d^4 for most pairs, and the two random matrices are the same for all purposes."
        ),
    ),
    Claim(
        "Torus, all scales: at low powers GPS struggles nearly as much as DMS (here: within 1 "
        "in log L at p = 2, 4).",
        ("multiscale-torus",),
        "difference in log L",
        partial(alike, name="multiscale-torus", pairs=(("GPS", "DMS"),), margin=1.0, at=(2, 4)),
    ),
    Claim(
        "Torus, all scales: GPS is clearly ahead at p = 16 and 32.",
        ("multiscale-torus",),
        _LEAD,
        partial(ahead, name="multiscale-torus", better="GPS", worse="DMS", at=(16, 32)),
    ),
    Claim(
        "Torus, all scales: as p grows on, GPS gets worse and worse.",
        ("multiscale-torus",),
        "step in log L",
        partial(rises, name="multiscale-torus", method="GPS", at=(32, 64, 128, 256, 512, 1024)),
    ),
    Claim(
        "Torus, all scales: in the end GPS is behind DMS.",
        ("multiscale-torus",),
        _LEAD,
        partial(ahead, name="multiscale-torus", better="DMS", worse="GPS", at=(1024,)),
    ),
    Claim(
        "Circle, all scales: DMS is ahead at every power.",
        ("multiscale-circle",),
        _LEAD,
        partial(ahead, name="multiscale-circle", better="DMS", worse="GPS"),
    ),
)
