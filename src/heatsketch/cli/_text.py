"""Results as text or JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

# Control characters of terminals, except tabs and line ends.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
FEW = 8  # most items of a list that are printed


def as_json(value: Any) -> str:
    """Return one line of strict JSON, with null for NaN and infinity."""
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # of numpy, which is slow to import
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def as_text(result: Mapping[str, Any]) -> str:
    r"""Return a line for each name and value; tab-separated lines if all values are lists.

    Examples
    --------
    >>> from heatsketch.cli._text import as_text
    >>> print(as_text({"rows": 60, "fits": True, "first_power": None, "columns": ["x", "y"]}))
    rows                 60
    fits                 yes
    columns              x, y
    >>> as_text({"row": ["a", "b"], "distance": [0.5, 0.25]})
    'row\tdistance\na\t0.5\nb\t0.25'
    """
    values = [part.tolist() if hasattr(part, "tolist") else part for part in result.values()]
    if values and all(isinstance(value, list) for value in values):
        lines = [[str(name) for name in result], *zip(*values, strict=True)]
        return "\n".join("\t".join(_word(cell, digits=6) for cell in line) for line in lines)
    named = zip(result, values, strict=True)
    return "\n".join(
        f"{name.replace('_', ' '):20} {_shown(name, value)}"
        for name, value in named
        if value is not None
    )


def _shown(name: str, value: Any) -> str:
    if name.endswith("bytes"):
        return readable_bytes(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{part} {_word(count)}" for part, count in value.items())
    if isinstance(value, list | tuple):
        more = f" and {len(value) - FEW} more" if len(value) > FEW else ""
        return ", ".join(map(_word, value[:FEW])) + more if value else "none"
    return _word(value)


def _word(value: Any, digits: int = 4) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def visible(text: str) -> str:
    """Return text with terminal control characters escaped."""
    return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def readable_bytes(size: float) -> str:
    """Format a size for display.

    Examples
    --------
    >>> from heatsketch.cli._text import readable_bytes
    >>> readable_bytes(3 * 2**29), readable_bytes(5 * 2**50)
    ('1.5 GiB', '5,120 TiB')
    """
    if size >= 2**43:
        return f"{size / 2**40:,.0f} TiB"
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{max(size / 2**20, 1):.0f} MiB"
