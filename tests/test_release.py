"""What a release consists of agrees with itself: versions, floors, pins, the table of evidence."""

import importlib.util
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
    floors = {re.sub(r"\[.*?\]", "", floor) for extra in extras for floor in extra}
    optional = {floor.replace("matplotlib", "matplotlib-base") for floor in floors} - {"heatsketch"}
    assert {floor.replace(" ", "") for floor in recipe["run_constraints"]} == optional


def test_the_extra_all_has_every_other():
    extras = PROJECT["project"]["optional-dependencies"]
    others = ",".join(sorted({*extras} - {"all"}))
    assert extras["all"] == [f"heatsketch[{others}]"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash(path):
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    for action in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", action), action


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


def test_the_change_log_has_notes_for_a_release():
    program = [ROOT / ".ci" / "changes"]
    found = subprocess.run([*program, "0.1.0"], capture_output=True, text=True)
    assert found.returncode == 0 and "The first release." in found.stdout
    assert "\n## " not in found.stdout
    missing = subprocess.run([*program, "0.0.1"], capture_output=True, text=True)
    assert missing.returncode == 1 and "0.0.1" in missing.stderr


# --- evidence ---------------------------------------------------------------------------------


def evidence_of(root):
    path = root / "benchmarks" / "evidence.py"
    spec = importlib.util.spec_from_file_location("evidence", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_script_that_writes_results_is_in_the_table():
    scripts = evidence_of(ROOT).SCRIPTS
    called = {script.call.split()[0] for script in scripts.values()}
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        writes = re.search(r"^\s+(return )?write\(", path.read_text(encoding="utf-8"), re.M)
        assert not writes or f"benchmarks/{path.name}" in called, f"add {path.name} to SCRIPTS"
    written = {file for script in scripts.values() for file in script.files}
    there = {path.name for path in (ROOT / "docs" / "benchmarks").iterdir()} - {"evidence.json"}
    assert there <= written


def git(folder, *arguments):
    options = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder, message="a"):
    git(folder, "add", "-A")
    git(folder, "commit", "-m", message, "--allow-empty")


@pytest.fixture
def project(tmp_path):
    """A repository with the script, and a benchmark that counts how often it ran."""
    for folder in ("src", "benchmarks", "docs/benchmarks"):
        (tmp_path / folder).mkdir(parents=True)
    text = (ROOT / "benchmarks" / "evidence.py").read_text(encoding="utf-8")
    (tmp_path / "benchmarks" / "evidence.py").write_text(text, encoding="utf-8")
    for page in ("page.py", "uses_page.py"):
        (tmp_path / "benchmarks" / page).write_text("")
    (tmp_path / "src" / "a.py").write_text("1")
    (tmp_path / "benchmarks" / "rows.py").write_text(
        "import pathlib, sys\n"
        "path = pathlib.Path('docs/benchmarks/rows.json')\n"
        "path.write_text((path.read_text() if path.exists() else '') + 'row\\n')\n"
        "sys.exit(pathlib.Path('fail').exists())\n"
    )
    git(tmp_path, "init")
    commit(tmp_path)
    return tmp_path


def ran(project, monkeypatch, *, continues=True):
    """Run the table of one script, and return its rows."""
    evidence = evidence_of(project)
    rows = evidence.Script("benchmarks/rows.py", ["rows.json"], continues)
    monkeypatch.setattr(evidence, "SCRIPTS", {"rows": rows})
    monkeypatch.setattr(sys, "argv", ["evidence.py"])
    evidence.main()
    return (project / "docs/benchmarks/rows.json").read_text().count("row")


def test_evidence_runs_what_is_out_of_date(project, monkeypatch):
    assert ran(project, monkeypatch, continues=False) == 1
    commit(project)  # of results, which are no reason
    assert ran(project, monkeypatch, continues=False) == 1
    (project / "src" / "a.py").write_text("2")
    with pytest.raises(SystemExit, match="commit them first"):
        ran(project, monkeypatch, continues=False)
    commit(project)
    assert ran(project, monkeypatch, continues=False) == 2
    (project / "docs/benchmarks/rows.json").write_text("changed")
    assert ran(project, monkeypatch, continues=False) == 1


def test_evidence_does_not_depend_on_comments_and_docstrings(project, monkeypatch):
    file = project / "src" / "a.py"
    for text, runs in (
        ('def f():\n    """One."""\n    return 1', 1),
        ('"""Of the file."""\ndef f():\n    """Two."""\n    return 1  # number', 1),
        ('def f():\n    """Two."""\n    return "1"', 2),
    ):
        file.write_text(text)
        commit(project)
        assert ran(project, monkeypatch, continues=False) == runs
    (project / "src" / "a.cpp").write_text("// a comment")  # which is not parsed
    commit(project)
    assert ran(project, monkeypatch, continues=False) == 3


@pytest.mark.parametrize(
    ("message", "runs"),
    [
        ("a\n\nResults: unchanged, since no script has lists in frames", 1),
        ("a\n\nResults: unchanged", 2),  # without a reason
        ("Results: unchanged, but not as a trailer", 2),
    ],
)
def test_evidence_does_not_depend_on_commits_that_say_so(project, monkeypatch, message, runs):
    assert ran(project, monkeypatch, continues=False) == 1
    file = project / "src" / "a.py"
    file.write_text("# a comment\n1")
    commit(project)
    file.write_text("2")
    commit(project, message)
    assert ran(project, monkeypatch, continues=False) == runs
    file.write_text("3")
    commit(project)  # beside a commit that says so, one that does not
    assert ran(project, monkeypatch, continues=False) == runs + 1


def test_evidence_without_dask_does_not_depend_on_it(project, monkeypatch):
    script, tasks = project / "benchmarks/rows.py", project / "src/heatsketch/engines/_dask"
    tasks.mkdir(parents=True)
    ran(project, monkeypatch, continues=False)
    (tasks / "a.py").write_text("1")
    commit(project)
    assert ran(project, monkeypatch, continues=False) == 1
    script.write_text("# with a DaskEngine\n" + script.read_text())
    commit(project)
    assert ran(project, monkeypatch, continues=False) == 2
    (tasks / "a.py").write_text("2")
    commit(project)
    assert ran(project, monkeypatch, continues=False) == 3


def test_evidence_keeps_rows_of_an_interrupted_run_only(project, monkeypatch):
    (project / "fail").touch()
    assert ran(project, monkeypatch) == 1
    (project / "fail").unlink()
    assert ran(project, monkeypatch) == 2  # the first row is of this commit
    (project / "src" / "a.py").write_text("2")
    commit(project)
    assert ran(project, monkeypatch) == 1  # and these are not
