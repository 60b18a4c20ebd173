"""Count lines of code without docstrings, comments and empty lines, by package.

::

    python .ci/count_lines.py [OTHER/src]
"""

import ast
import io
import statistics
import sys
import tokenize
from collections import Counter
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src"
PACKAGE = Path(sys.argv[1] if len(sys.argv) > 1 else SOURCES) / "heatsketch"
IGNORED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def docstring_lines(tree):
    """Return the lines that docstrings take."""
    lines = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                lines.update(range(value.lineno, value.end_lineno + 1))
    return lines


def code_lines(text):
    """Return the lines that hold code."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in IGNORED:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines - docstring_lines(ast.parse(text))


def bodies(text):
    """Yield the number of code lines of each function, without its signature."""
    lines = code_lines(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield sum(node.body[0].lineno <= line <= node.end_lineno for line in lines)


def main():
    """Print lines by package, and how long functions are."""
    counts, lengths = Counter(), []
    for path in sorted(PACKAGE.rglob("*.py")):
        text, relative = path.read_text(), path.relative_to(PACKAGE)
        counts[relative.parts[0] if len(relative.parts) > 1 else "."] += len(code_lines(text))
        lengths.extend(bodies(text))
    for name, count in counts.most_common():
        print(f"{count:6d}  {name}")
    print(f"{counts.total():6d}  Python")
    kernels = PACKAGE / "_core" / "kernels"
    texts = [path.read_text() for kind in ("*.cpp", "*.hpp") for path in kernels.glob(kind)]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    code = sum(bool(line) and not line.startswith("//") for line in lines)
    print(f"{code:6d}  C++ ({len(lines)} with comments and empty lines)")
    tenths = statistics.quantiles(lengths, n=10)
    middle = statistics.median(lengths)
    print(f"bodies: median {middle:.0f} lines, 90th percentile {tenths[-1]:.0f}")


if __name__ == "__main__":
    main()
