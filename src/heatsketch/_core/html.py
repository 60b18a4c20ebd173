"""HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

MOST_ROWS = 10


def html_table(columns: Mapping[str, Any], caption: str = "") -> str:
    """Return the first rows of columns as an HTML table; numbers have three digits."""
    cells = [np.atleast_1d(column).tolist() for column in columns.values()]
    n_rows = len(cells[0])
    rows = [
        _row("td", map(_text, row)) for row in zip(*(c[:MOST_ROWS] for c in cells), strict=True)
    ]
    if n_rows > MOST_ROWS:
        caption = f"{caption} The first {MOST_ROWS} of {n_rows:,} rows.".strip()
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{_row('th', columns)}{''.join(rows)}</table>"


def _row(tag: str, texts: Any) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(getattr(value, "__name__", value))
