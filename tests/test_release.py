"""What a release consists of agrees with itself: versions and floors."""

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import heatsketch

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def yaml_of(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_every_file_names_the_same_version():
    assert yaml_of("CITATION.cff")["version"] == heatsketch.__version__
    assert yaml_of("conda/recipe.yaml")["context"]["version"] == heatsketch.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert ".dev" in heatsketch.__version__ or f"\n## {heatsketch.__version__} (" in changes


def test_conda_and_pip_want_the_same_libraries():
    recipe = yaml_of("conda/recipe.yaml")["requirements"]
    wanted = {
        re.sub(r"([\w-]+)", r"\1 ", floor, count=1) for floor in PROJECT["project"]["dependencies"]
    }
    assert {*recipe["run"]} - {"python"} == wanted
    extras = PROJECT["project"]["optional-dependencies"].values()
    floors = {re.sub(r"\[.*?\]|;.*", "", floor) for extra in extras for floor in extra}
    optional = {floor.replace("matplotlib", "matplotlib-base") for floor in floors} - {"heatsketch"}
    assert {floor.replace(" ", "") for floor in recipe["run_constraints"]} == optional


def test_the_extra_all_has_every_other():
    extras = PROJECT["project"]["optional-dependencies"]
    others = ",".join(sorted({*extras} - {"all"}))
    assert extras["all"] == [f"heatsketch[{others}]"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(path):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    text = path.read_text(encoding="utf-8")
    called = set(re.findall(r"make (\w+)", text))
    listed = re.search(r"target: \[(.*)\]", text)
    called |= set(listed[1].split(", ")) if listed else set()
    assert called <= targets


def test_the_smoke_part_needs_no_files_but_those_that_wheels_are_tested_with(tmp_path):
    for source in PROJECT["tool"]["cibuildwheel"]["test-sources"]:
        copy = tmp_path / source
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.symlink_to(ROOT / source) if source == "tests" else shutil.copy(ROOT / source, copy)
    program = tmp_path / ".ci" / "smoke.py"
    files = runpy.run_path(str(program))["FILES"]
    names = [str(tmp_path / "tests" / name) for name in files]
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*collect, *names], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
