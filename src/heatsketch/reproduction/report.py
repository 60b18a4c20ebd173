"""Output files: figures, verdicts and the results page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from heatsketch.reproduction.catalogue import PORTRAITS
from heatsketch.reproduction.claims import CLAIMS, judge
from heatsketch.reproduction.figures import draw_curves, draw_portrait, save
from heatsketch.reproduction.page import write_page
from heatsketch.reproduction.runner import Results, Run

__all__ = ["write_report"]


def write_report(run: Run, results: Sequence[Results]) -> Path:
    """Draw all figures, judge all claims, and return the path of the page."""
    by_name = {found.name: found for found in results}
    for found in results:
        for name, methods in found.experiment.figures.items():
            save(draw_curves(found, methods), run.folder / name)
    for name, portrait in PORTRAITS.items():
        if portrait.experiment in by_name:
            save(draw_portrait(portrait, run.seed), run.folder / name)
    verdicts = judge(CLAIMS, by_name)
    rows = [
        {"says": claim.says, "verdict": word, **worst._asdict(), "agree": agree, "of": points}
        for claim, word, worst, agree, points in verdicts
    ]
    (run.folder / "claims.json").write_text(json.dumps(rows, indent=1) + "\n")
    page = run.folder.with_suffix(".md")
    page.write_text(write_page(by_name, verdicts, figures=run.folder.name))
    return page
