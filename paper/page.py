"""The results page: figures, numbers, and a verdict on every claim."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from paper.catalogue import PORTRAITS
from paper.claims import CLAIMS, Verdict, judge
from paper.figures import draw_curves, draw_portrait, save
from paper.runner import Results

INTRODUCTION = """\
# The paper's experiments, reproduced

Made by `make reproduce`; do not edit by hand. The paper is Gilbert and O'Neill, *Sketching
the Heat Kernel: Using Gaussian Processes to Embed Data* (2024).

Each trial samples points, embeds them by every method, and measures the distortion `L`: the largest
stretch of a distance over the smallest. All methods of a trial share the sample, and both
normalizations share the random matrix. DM is the diffusion map, GP the Gaussian process embedding,
GPSB the one with random signs; the last letter is S for the symmetric and B for the bistochastic
normalization. NI, where it was run, is the map of least distortion, which the paper does not have
(NISW: of a wide sketch). Curves show the mean of `log L`, error bars its standard deviation over
trials. An embedding in `k` dimensions takes the first `k` columns of one random matrix a trial.
"""


def write_report(results: Sequence[Results], folder: Path, *, seed: int) -> Path:
    """Draw all figures, judge all claims, and return the path of the page beside ``folder``."""
    by_name = {one.name: one for one in results}
    portraits = {name: one for name, one in PORTRAITS.items() if one.experiment in by_name}
    for one in results:
        for name, methods in one.experiment.figures.items():
            save(draw_curves(one, methods), folder / name)
    for name, portrait in portraits.items():
        save(draw_portrait(portrait, seed), folder / name)
    verdicts = judge(CLAIMS, by_name)
    rows = [
        {
            "statement": claim.statement,
            "verdict": word,
            **worst._asdict(),
            "agree": agree,
            "of": points,
        }
        for claim, word, worst, agree, points in verdicts
    ]
    (folder / "claims.json").write_text(json.dumps(rows, indent=1) + "\n")
    parts = [INTRODUCTION, *_claims(verdicts, by_name), "## Figures\n"]
    for one in results:
        parts += _experiment(one, folder.name)
    if portraits:
        parts += ["### Sample embeddings\n", "Colour is the angle on the circle.\n"]
        parts += [f"![{one.title}]({folder.name}/{name}.png)" for name, one in portraits.items()]
        parts.append("")
    page = folder.with_suffix(".md")
    page.write_text("\n".join(parts))
    return page


def _claims(verdicts: Sequence[Verdict], results: Mapping[str, Results]) -> list[str]:
    words = [verdict.word for verdict in verdicts]
    tally = ", ".join(f"{word}: {words.count(word)}" for word in dict.fromkeys(words))
    complete = {name for name, one in results.items() if len(one.trials) >= one.experiment.trials}
    return [
        "## Claims\n",
        f"{len(verdicts)} statements ({tally}). The number is the mean over trials at the point "
        "nearest to failing, with an interval of 95 % that is simultaneous over the points of "
        "the claim.\n",
        "| claim of the paper | number | at | estimate | 95 % interval | points | verdict |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {claim.statement} | {claim.number} | {worst.where} | {worst.value:.3g} | "
            f"{worst.low:.3g} to {worst.high:.3g} | {n_agree} of {n_points} | **{word}** |"
            for claim, word, worst, n_agree, n_points in verdicts
        ),
        "",
        *(
            f"* *{claim.statement}* {word.capitalize()}: {claim.note}"
            for claim, word, *_ in verdicts
            if claim.note and word != "holds" and complete >= {*claim.experiments}
        ),
        "",
    ]


def _experiment(results: Results, figures: str) -> list[str]:
    experiment = results.experiment
    header = " | ".join(f"{experiment.letter} = {value}" for value in experiment.axis)
    means = {name: results.log_L(name).mean(axis=0) for name in experiment.methods}
    return [
        f"### {experiment.title}\n",
        *(f"![{experiment.title}]({figures}/{name}.png)\n" for name in experiment.figures),
        f"Mean of `log L` over {len(results.trials)} trials:\n",
        f"| | {header} |",
        "|---" * (1 + len(experiment.axis)) + "|",
        *(
            f"| {name} | " + " | ".join(f"{value:.2f}" for value in values) + " |"
            for name, values in means.items()
        ),
        "",
    ]
