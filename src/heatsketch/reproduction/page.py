"""The results page: figures, numbers, and a verdict on every claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heatsketch.reproduction.catalogue import PORTRAITS
from heatsketch.reproduction.claims import Verdict
from heatsketch.reproduction.runner import Results

__all__ = ["write_page"]

_INTRODUCTION = """\
# The paper's experiments, reproduced

Made by `heatsketch reproduce`; do not edit by hand. The paper is Gilbert and O'Neill, *Sketching
the Heat Kernel: Using Gaussian Processes to Embed Data* (2024).

Each trial samples points, embeds them by every method, and measures the distortion `L`: the largest
stretch of a distance over the smallest. All methods of a trial share the sample, and both
normalizations share the random matrix. DM is the diffusion map, GP the Gaussian process embedding,
GPSB the one with random signs; the last letter is S for the symmetric and B for the bistochastic
normalization. NI, where it was run, is the map of least distortion, which is ours (NISW: of a wide
sketch). Curves show the mean of `log L`, error bars its standard deviation over trials. An
embedding in `k` dimensions takes the first `k` columns of one random matrix a trial.
"""


def write_page(results: Mapping[str, Results], verdicts: Sequence[Verdict], *, figures: str) -> str:
    """Return the page in Markdown; ``figures`` is the relative image folder."""
    return "\n".join(
        [
            _INTRODUCTION,
            *_claims(verdicts, results),
            "## Figures\n",
            *(line for found in results.values() for line in _experiment(found, figures)),
            *_portraits(results, figures),
        ]
    )


def _claims(verdicts: Sequence[Verdict], results: Mapping[str, Results]) -> list[str]:
    words = [verdict.word for verdict in verdicts]
    tally = ", ".join(f"{word}: {words.count(word)}" for word in dict.fromkeys(words))
    in_full = {name for name, found in results.items() if found.is_complete}
    notes = [
        verdict
        for verdict in verdicts
        if verdict.claim.note
        and verdict.word != "holds"
        and in_full >= {*verdict.claim.experiments}
    ]
    return [
        "## Claims\n",
        f"{len(verdicts)} statements ({tally}). The number is the mean over trials at the point "
        "nearest to failing, with an interval of 95 % that is simultaneous over the points of "
        "the claim.\n",
        "| the paper says | number | at | estimate | 95 % interval | points | verdict |",
        "|---|---|---|---|---|---|---|",
        *map(_claim, verdicts),
        "",
        *(
            f"* *{verdict.claim.says}* {verdict.word.capitalize()}: {verdict.claim.note}"
            for verdict in notes
        ),
        "",
    ]


def _claim(verdict: Verdict) -> str:
    worst = verdict.worst
    return (
        f"| {verdict.claim.says} | {verdict.claim.number} | {worst.where} | {worst.value:.3g} | "
        f"{worst.low:.3g} to {worst.high:.3g} | {verdict.n_agree} of {verdict.n_points} | "
        f"**{verdict.word}** |"
    )


def _experiment(results: Results, figures: str) -> list[str]:
    experiment = results.experiment
    means = {method: results.log_L(method).mean(axis=0) for method in experiment.methods}
    header = " | ".join(f"{experiment.axis_name} = {value}" for value in experiment.axis)
    return [
        f"### {experiment.title}\n",
        *(f"![{experiment.title}]({figures}/{name}.png)\n" for name in experiment.figures),
        f"Mean of `log L` over {len(results.trials)} trials:\n",
        f"| | {header} |",
        "|---" * (1 + len(experiment.axis)) + "|",
        *(
            f"| {method} | " + " | ".join(f"{value:.2f}" for value in values) + " |"
            for method, values in means.items()
        ),
        "",
    ]


def _portraits(results: Mapping[str, Results], figures: str) -> list[str]:
    shown = {name: one for name, one in PORTRAITS.items() if one.experiment in results}
    if not shown:
        return []
    return [
        "### Sample embeddings\n",
        "Colour is the angle on the circle.\n",
        *(f"![{portrait.title}]({figures}/{name}.png)" for name, portrait in shown.items()),
        "",
    ]
