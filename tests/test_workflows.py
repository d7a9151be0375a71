"""The commands in the GitHub workflows exist, and the files that GitHub reads are valid."""

import importlib.util
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).parents[1]
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text("utf-8"))
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}

needs_bash = pytest.mark.skipif(
    os.name == "nt" or not shutil.which("bash"), reason="needs a POSIX shell"
)
needs_make = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


# ---------------------------------------------------------------- reading steps and commands


def jobs():
    """Yield (workflow and job, job)."""
    for name, workflow in WORKFLOWS.items():
        for key, job in workflow["jobs"].items():
            yield f"{name}-{key}", job


def combinations(job):
    """Return the values of the matrix of a job, one dictionary for each combination."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    include = matrix.pop("include", [])
    product = [
        dict(zip(matrix, values, strict=True)) for values in itertools.product(*matrix.values())
    ]
    return include if include and not matrix else product


def variables(job, step, values):
    """Return the environment variables of a step, with the values of the matrix."""
    found = {**job.get("env", {}), **step.get("env", {})}
    replaced = re.compile(r"\$\{\{ matrix\.([\w-]+) \}\}")
    return {
        name: replaced.sub(lambda match: str(values[match[1]]), str(text))
        for name, text in found.items()
    }


def simple_commands(script, environment=None):
    """Return the words of each simple command of a shell script, after expanding variables.

    This covers the shell syntax of the workflows: comments, assignments, pipes, and command
    substitutions.  Only variables in `environment` are expanded.
    """
    inner = [match[1] for match in re.finditer(r"\$\(([^()]*)\)", script)]
    outer = re.sub(r"\$\([^()]*\)", "substituted", script)
    for name, value in (environment or {}).items():
        outer = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", lambda _, value=value: value, outer)
    result = []
    for line in [*outer.splitlines(), *inner]:
        for part in line.split(" | "):
            words = shlex.split(part, comments=True)
            while words and re.match(r"[A-Za-z_]\w*=", words[0]):
                words = words[1:]
            if words:
                result.append(words)
    return result


def workflow_commands():
    """Return the words of all commands of all steps, without repetitions."""
    found = {}
    for _, job in jobs():
        for step, values in itertools.product(job["steps"], combinations(job)):
            if "run" in step:
                for words in simple_commands(step["run"], variables(job, step, values)):
                    found[shlex.join(words)] = words
    return found


# ------------------------------------------------------------------------ checking a command


@cache
def help_text(*command):
    """Return the output of a command with --help."""
    done = subprocess.run(
        [*command, "--help"], capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT, check=False
    )
    return done.stdout if done.returncode == 0 else ""


def unknown_options(words, *command):
    """Yield the options in `words` that the help of a command does not list."""
    for word in words:
        option = word.partition("=")[0]
        if word.startswith("-") and not re.search(rf"{re.escape(option)}\b", help_text(*command)):
            yield f"{' '.join(command)} has no option {option}"


def make_faults(words):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for word in words:
        if "=" in word:
            if f"$({word.partition('=')[0]})" not in makefile:
                yield f"the Makefile does not use {word}"
        elif not re.search(rf"^{re.escape(word)}:", makefile, re.MULTILINE):
            yield f"the Makefile has no target {word}"


def pip_faults(words):
    command, *rest = words
    yield from unknown_options(rest, sys.executable, "-m", "pip", command)
    for extra in re.findall(r"\.\[([\w,]+)\]", " ".join(rest)):
        for name in extra.split(","):
            if name not in PROJECT["project"]["optional-dependencies"]:
                yield f"pyproject.toml has no extra {name}"


def pytest_faults(words):
    yield from unknown_options(words, sys.executable, "-m", "pytest")
    names = {text.partition(":")[0] for text in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    for option, value in itertools.pairwise(words):
        if option == "-m" and value not in names:
            yield f"pytest has no marker {value}"


def benchmarks_faults(words):
    from benchmarks.__main__ import matching_suites

    yield from unknown_options(words, sys.executable, "-m", "benchmarks")
    for before, word in itertools.pairwise(["", *words]):
        if not (word.startswith("-") or before == "--against" or matching_suites(word)):
            yield f"there is no suite {word}"


def python_faults(words):
    modules = {"pip": pip_faults, "pytest": pytest_faults, "benchmarks": benchmarks_faults}
    match words:
        case ["-m", name, *rest] if name in modules:
            yield from modules[name](rest)
        case [str(script), *rest] if (ROOT / script).is_file():
            yield from unknown_options(rest, sys.executable, script)
        case _:
            yield f"python {shlex.join(words)} is neither a known module nor a script"


def no_faults(words):
    """Accept a command of the system; tests below run the steps that contain one."""
    return ()


CHECKS = {
    "make": make_faults,
    "python": python_faults,
    **dict.fromkeys(["git", "ls", "tail"], no_faults),
}


def faults(words):
    """Return the errors of a command, as texts."""
    check = CHECKS.get(words[0])
    return list(check(words[1:])) if check else [f"unknown command {words[0]}"]


# ------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("words", [pytest.param(w, id=i) for i, w in workflow_commands().items()])
def test_command_exists(words):
    assert faults(words) == []


@needs_make
@pytest.mark.parametrize(
    "target", sorted({words[1] for words in workflow_commands().values() if words[0] == "make"})
)
def test_make_can_plan_the_target(target):
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("make nothing", "no target nothing"),
        ("make lint COLOUR=blue", "does not use COLOUR=blue"),
        ("python -m pip install --nothing numpy", "no option --nothing"),
        ("python -m pip install --editable '.[dev,nothing]'", "no extra nothing"),
        ("python -m pytest -m nothing", "no marker nothing"),
        ("python -m pytest --nothing", "no option --nothing"),
        ("python -m benchmarks nothing", "no suite nothing"),
        ("python -m benchmarks guard --since yesterday", "no option --since"),
        ("python -m nothing", "neither a known module nor a script"),
        ("python tools/nothing.py", "neither a known module nor a script"),
        ("nothing --at all", "unknown command nothing"),
    ],
)
def test_faulty_commands_are_found(command, message):
    assert message in " ".join(faults(shlex.split(command)))


def test_scripts_are_split_into_commands():
    script = """
    # a comment
    first=$(git log -1 | tail -n 1)
    X=1 python -m pytest -m "$MARKER"  # another
    """
    found = simple_commands(script, {"MARKER": "long"})
    expected = ["python -m pytest -m long", "git log -1", "tail -n 1"]
    assert [shlex.join(words) for words in found] == expected


def test_every_run_step_is_checked():
    steps = [step for _, job in jobs() for step in job["steps"] if "run" in step]
    assert len(steps) > 10 and len(workflow_commands()) > 8
    assert all(simple_commands(step["run"]) for step in steps)


@pytest.mark.parametrize(("name", "job"), list(jobs()), ids=[name for name, _ in jobs()])
def test_jobs_are_limited(name, job):
    assert job["timeout-minutes"] <= 360  # the limit of GitHub
    assert set(job["permissions"].items()) <= {("contents", "read"), ("id-token", "write")}
    if "id-token" in job["permissions"]:  # only the job that publishes, after an approval
        assert name == "release-publish" and "environment" in job
    for step in job["steps"]:  # values of the event are passed in variables, which are quoted
        assert "${{" not in step.get("run", "")


def test_default_permissions_are_empty():
    assert [name for name, workflow in WORKFLOWS.items() if workflow["permissions"] != {}] == []


def test_python_versions_agree_with_the_project():
    tested = WORKFLOWS["tests"]["jobs"]["tests"]["strategy"]["matrix"]["python"]
    project = PROJECT["project"]
    assert project["requires-python"] == f">={tested[0]}"
    classified = re.findall(r":: (3\.\d+)", " ".join(project["classifiers"]))
    assert set(classified) <= set(tested)


# ------------------------------------------------------------------- steps with shell scripts


def run_step(workflow, job, folder, containing, **environment):
    """Run the step of a job whose script contains a text, in a folder."""
    steps = WORKFLOWS[workflow]["jobs"][job]["steps"]
    script = next(step["run"] for step in steps if containing in step.get("run", ""))
    return subprocess.run(
        ["bash", "-e", "-c", script],  # as GitHub does for steps without `shell`
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@needs_bash
@pytest.mark.parametrize(("tag", "accepted"), [("v1.2.0", True), ("v1.2.1", False)])
def test_tag_must_be_the_version(tmp_path, tag, accepted):
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "mercer-1.2.0.tar.gz").touch()
    done = run_step("release", "build", tmp_path, "GITHUB_REF_NAME", GITHUB_REF_NAME=tag)
    assert (done.returncode == 0) == accepted, done.stderr


@needs_bash
@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@pytest.mark.parametrize(
    ("days", "chosen"), [([30, 20, 8, 1, 0], 2), ([3, 2, 1], 0)], ids=["old", "new"]
)
def test_guard_compares_with_a_commit_of_the_week_before(tmp_path, days, chosen):
    environment = {
        **{f"GIT_{role}_NAME": "a" for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_EMAIL": "a@b" for role in ("AUTHOR", "COMMITTER")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }

    def git(*arguments, date=""):
        dates = {f"GIT_{role}_DATE": date for role in ("AUTHOR", "COMMITTER") if date}
        command = ["git", *arguments]
        env = {**os.environ, **environment, **dates}
        return subprocess.run(
            command, cwd=tmp_path, env=env, check=True, capture_output=True, text=True
        ).stdout.strip()

    now = int(subprocess.run(["date", "+%s"], check=True, capture_output=True, text=True).stdout)
    git("init", "--quiet")
    commits = []
    for age in days:
        git("commit", "--quiet", "--allow-empty", "-m", "x", date=f"{now - age * 86_400} +0000")
        commits.append(git("rev-parse", "HEAD"))
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python").write_text('#!/bin/sh\necho "$@"\n')  # prints its arguments
    (folder / "python").chmod(0o755)
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    done = run_step("weekly", "guard", tmp_path, "benchmarks guard", PATH=path, **environment)
    assert done.stdout == f"-m benchmarks guard --against {commits[chosen]}\n", done.stderr


# ----------------------------------------------------------------------------- validity


@pytest.fixture(scope="module")
def checker():
    spec = importlib.util.spec_from_file_location(
        "check_github_files", ROOT / "tools" / "check_github_files.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("check-jsonschema", "zizmor"):
        if not shutil.which(name, path=module.BIN):
            pytest.skip(f"{name} is not installed")
    return module


def test_the_command_for_versions_in_the_bug_form():
    """It also works without numba."""
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml").read_text("utf-8"))
    (text,) = [part["attributes"] for part in form["body"] if part.get("id") == "versions"]
    python, option, code = shlex.split(re.search("`(python -c .*?)`", text["description"])[1])
    assert (python, option) == ("python", "-c")
    hide = "import sys; sys.modules['numba'] = None; "
    command = [sys.executable, "-c", hide + code]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^mercer \d", done.stdout) and "sklearn:" in done.stdout


def test_every_schema_has_files(checker):
    *schemas, zizmor = checker.commands(ROOT)
    assert [command for command in schemas if len(command) == 3] == [] and zizmor[0] == "zizmor"


@pytest.mark.parametrize(
    ("check", "path", "before", "after", "message"),
    [
        ("vendor.github-workflows", ".github/workflows/docs.yml", "runs-on:", "runs:", "runs-on"),
        ("require-timeout", ".github/workflows/docs.yml", "timeout-", "x-", "timeout-minutes"),
        ("zizmor", ".github/workflows/docs.yml", "persist-", "x-", "artipacked"),
        ("dependabot", ".github/dependabot.yml", "interval: weekly", "interval: never", "never"),
        ("issue-forms", ".github/ISSUE_TEMPLATE/bug.yml", "type: textarea", "type: x", "body"),
        ("citation", "CITATION.cff", "type: software", "type: poem", "poem"),
    ],
)
def test_invalid_files_are_found(checker, tmp_path, check, path, before, after, message):
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    shutil.copy(ROOT / "CITATION.cff", tmp_path)
    file = tmp_path / path
    text = file.read_text("utf-8")
    assert before in text
    file.write_text(text.replace(before, after, 1), "utf-8")
    (command,) = [words for words in checker.commands(tmp_path) if check in " ".join(words[:3])]
    assert message in checker.findings(command, tmp_path)
