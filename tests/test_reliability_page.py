"""The page of promises says nothing that is not there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "developer" / "reliability.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)))
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "developer").glob("*.md"))]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize(("path", "name"), NAMED, ids="::".join)
def test_every_test_that_is_named_exists(path, name):
    tree = ast.parse((ROOT / path).read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert not name or name in names


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_targets_that_are_named_are_in_the_makefile(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    calls = re.findall(r"`make ([a-z ]+)`", page.read_text(encoding="utf-8"))
    assert {target for call in calls for target in call.split()} <= targets


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_pinned_and_may_read_only(path):
    text = path.read_text()
    for used in re.findall(r"uses: *(\S+)", text):
        assert re.search(r"@[0-9a-f]{40}$", used), used
    assert re.search(r"^permissions:( \{\}|\n  contents: read\n)", text, re.M)
    assert "persist-credentials: false" in text or "checkout" not in text
    assert "secrets." not in text and "pull_request_target" not in text
