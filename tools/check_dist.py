"""Check the distributions that `make dist` has built.

    python tools/check_dist.py                the files, and an installation in a new environment
    python tools/check_dist.py --files-only   only the files
    python tools/check_dist.py --release      also conditions for a release, such as a final version

The files: the wheel contains the modules, stubs and assets of the package and nothing else; the
sdist contains the files of the repository; a wheel that is built from the repository is identical
to the one that was built from the sdist; descriptions have no relative links.

The installation: a virtual environment in a temporary folder, without network.  The wheel is first
installed without extras, for tools/smoke.py, and then with `[all]`, for tools/smoke_install.py.
Compiled loops are cached in the temporary folder.
"""

from __future__ import annotations

import argparse
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator
from email.message import Message
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "tools"

# Limits of the sizes, about 1.5 times the sizes at version 0.1.0.
MAX_WHEEL_BYTES = 2_500_000
MAX_SDIST_BYTES = 7_500_000

# Types of files that belong to the package; other types in src/mercer are findings, so that no file
# is published by accident.
PACKAGE_SUFFIXES = {".py", ".pyi", ".typed", ".js", ".css", ".html"}
METADATA_FILES = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
# Files that every sdist contains, also if the repository is not available for comparison.
SDIST_FILES = {
    *("CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE"),
    *("Makefile", "PKG-INFO", "README.md", "SECURITY.md", "pyproject.toml"),
    *("src/mercer/py.typed", "tests/zoo.py", "tools/build_metadata.py", "docs/index.rst"),
}
_RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:)[^)\s]+\)", re.I)


def package_files() -> set[str]:
    """Return the paths that a wheel must contain, from the folder of the package."""
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "mercer").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def wheel_findings(names: Iterable[str], expected: set[str]) -> Iterator[str]:
    """Yield what is wrong with the file names in a wheel.

    Parameters
    ----------
    names : iterable of str
        The files in the wheel.
    expected : set of str
        The files of the package.
    """
    present = set(names)
    package = {name for name in present if name.startswith("mercer/")}
    metadata = {
        name.partition("/")[2]
        for name in present - package
        if re.match(r"mercer-[^/]+\.dist-info/", name)
    }
    yield from (f"wheel: {name} is missing" for name in sorted(expected - package))
    yield from (
        f"wheel: {name} is not a file of the package" for name in sorted(package - expected)
    )
    for name in sorted(package):
        if PurePosixPath(name).suffix not in PACKAGE_SUFFIXES:
            yield f"wheel: {name} has a type that is not in PACKAGE_SUFFIXES of tools/check_dist.py"
    yield from (f"wheel: {name} is missing" for name in sorted(METADATA_FILES - metadata))
    if len(present) != len(package) + len(METADATA_FILES):
        others = sorted(n for n in present - package if n.partition("/")[2] not in METADATA_FILES)
        yield f"wheel: unexpected files {', '.join(others)}"
    folders = {name.rpartition("/")[0] for name in package if name.endswith(".py")}
    for folder in sorted(folders):
        if f"{folder}/__init__.py" not in package:
            yield f"wheel: {folder} has no __init__.py"


def sdist_findings(names: Iterable[str], tracked: set[str] | None) -> Iterator[str]:
    """Yield what is wrong with the file names in an sdist.

    Parameters
    ----------
    names : iterable of str
        The files in the sdist, without the name of its root folder.
    tracked : set of str or None
        The files of the repository; None if they are not known.
    """
    present = set(names)
    yield from (f"sdist: {name} is missing" for name in sorted(SDIST_FILES - present))
    if tracked is not None:
        yield from (f"sdist: {name} is missing" for name in sorted(tracked - present))
        others = sorted(present - tracked - {"PKG-INFO"})
        yield from (f"sdist: {name} is not a file of the repository" for name in others)
    for name in sorted(present):
        if "__pycache__" in name or name.endswith((".pyc", ".nbi", ".nbc")):
            yield f"sdist: {name} is a cache"


def metadata_findings(metadata: Message, version: str) -> Iterator[str]:
    """Yield what is wrong with the metadata of a wheel."""
    text = str(metadata.get_payload())
    if metadata["Version"] != version:
        yield f"metadata: version {metadata['Version']}, but the package says {version}"
    if metadata["Description-Content-Type"] != "text/markdown":
        yield f"metadata: the description is {metadata['Description-Content-Type']}"
    outside_code = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    for link in _RELATIVE_LINK.findall(outside_code):
        yield f"metadata: relative link {link} in the description"


def release_findings(version: str) -> Iterator[str]:
    """Yield what remains to be done before a version is published."""
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    if not hook["tool"]["hatch"]["metadata"]["hooks"]["custom"]["base-url"]:
        yield "release: base-url in pyproject.toml is empty, so that the package has no addresses"
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        yield f"release: {version} is a development version"
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changes, re.M):
        yield f"release: CHANGELOG.md has no section [{version}] with a date"
    if not re.search(
        rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M
    ):
        yield f"release: CITATION.cff does not have version {version}"
    for page in ("README.md", "docs/install.md"):
        if "not on PyPI" in " ".join((ROOT / page).read_text("utf-8").split()):
            yield f"release: {page} says that mercer is not on PyPI"
    if (files := tracked_files()) is not None and changed_files():
        yield f"release: not all changes of the {len(files)} files are committed"


def tracked_files() -> set[str] | None:
    """Return the files that git tracks, or None outside of a repository."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return None
    return set(_git("ls-files", "-z").split("\0")) - {""}


def changed_files() -> bool:
    """Return True if files differ from the last commit."""
    return bool(_git("status", "--porcelain"))


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def package_version() -> str:
    """Return the version of the package, without importing it."""
    namespace: dict[str, str] = {}
    exec((ROOT / "src" / "mercer" / "_version.py").read_text("utf-8"), namespace)
    return namespace["__version__"]


def built(folder: Path) -> tuple[Path, Path]:
    """Return the wheel and the sdist in a folder, which must contain one of each."""
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        found = f"{len(wheels)} wheels and {len(sdists)} sdists"
        raise SystemExit(f"{folder} contains {found}; `make dist` builds one of each")
    return wheels[0], sdists[0]


def sdist_names(sdist: Path) -> list[str]:
    """Return the files in an sdist, without the name of its root folder."""
    with tarfile.open(sdist) as archive:
        return [m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()]


def wheel_contents(wheel: Path) -> dict[str, bytes]:
    """Return the files in a wheel with their contents."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def file_findings(wheel: Path, sdist: Path) -> Iterator[str]:
    """Yield all findings about the files of both distributions, and print their sizes."""
    contents, names = wheel_contents(wheel), sdist_names(sdist)
    for path, count, limit in (
        (wheel, len(contents), MAX_WHEEL_BYTES),
        (sdist, len(names), MAX_SDIST_BYTES),
    ):
        size = path.stat().st_size
        print(f"{path.name}: {size:,} bytes, {count} files", flush=True)
        if size > limit:
            yield f"{path.name}: {size:,} bytes, more than the limit of {limit:,}"
    yield from wheel_findings(contents, package_files())
    yield from sdist_findings(names, tracked_files())
    metadata = next((text for name, text in contents.items() if name.endswith("/METADATA")), b"")
    yield from metadata_findings(email.message_from_bytes(metadata), package_version())
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, str(ROOT)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"the repository does not build a wheel:\n{done.stdout}{done.stderr}"
            return
        direct = wheel_contents(next(Path(folder).glob("*.whl")))
    for name in sorted(contents.keys() | direct.keys()):
        if contents.get(name) != direct.get(name):
            yield f"{name} differs between the wheels from the sdist and from the repository"


def clean_environment(folder: Path) -> dict[str, str]:
    """Return environment variables for the new environment: no PYTHONPATH, caches in `folder`."""
    removed = ("PYTHON", "MERCER", "NUMBA", "VIRTUAL_ENV")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(removed)}
    caches = {"NUMBA_CACHE_DIR": "numba", "MPLCONFIGDIR": "matplotlib", "TMPDIR": "tmp"}
    for name in caches.values():
        (folder / name).mkdir()
    return kept | {variable: str(folder / name) for variable, name in caches.items()}


def check_installation(wheel: Path) -> list[str]:
    """Install the wheel in a new environment and run both smoke tests there; return findings."""
    with tempfile.TemporaryDirectory(prefix="mercer-dist-") as name:
        folder = Path(name).resolve()
        if folder.is_relative_to(ROOT):
            raise SystemExit(f"the temporary folder {folder} is inside the repository; set TMPDIR")
        environment, work = clean_environment(folder), folder / "work"
        work.mkdir()
        venv.create(folder / "venv", with_pip=True)
        scripts = "Scripts" if os.name == "nt" else "bin"
        python = str(folder / "venv" / scripts / "python")

        def run(title: str, *command: str) -> bool:
            start = time.perf_counter()
            done = subprocess.run(command, cwd=work, env=environment, check=False)
            print(f"{title}: {time.perf_counter() - start:.0f} s", flush=True)
            return done.returncode == 0

        def installed(requirement: str) -> bool:
            pip = (python, "-m", "pip", "install", "-qq", "--disable-pip-version-check")
            name = "mercer[all]" if requirement.endswith("]") else "mercer"
            return run(f"installing {name}", *pip, requirement)

        def offline(script: str) -> bool:
            shutil.copy(TOOLS / script, work)
            return run(script, sys.executable, str(TOOLS / "offline.py"), python, script)

        steps = [
            ("installing the wheel failed", lambda: installed(str(wheel))),
            ("tools/smoke.py failed", lambda: offline("smoke.py")),
            ("installing the extras failed", lambda: installed(f"{wheel}[all]")),
            ("tools/smoke_install.py failed", lambda: offline("smoke_install.py")),
        ]
        for problem, step in steps:
            if not step():
                return [f"installation: {problem}"]
        package = next((folder / "venv").glob("**/site-packages/mercer"))
        caches = [path.name for suffix in ("nbi", "nbc") for path in package.rglob(f"*.{suffix}")]
        return [f"installation: {name} was written into the package" for name in caches]


def main(arguments: list[str] | None = None) -> int:
    """Print all findings; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="default: dist")
    parser.add_argument("--files-only", action="store_true", help="do not install the wheel")
    parser.add_argument("--release", action="store_true", help="also check that it can be released")
    options = parser.parse_args(arguments)
    wheel, sdist = built(options.folder.resolve())
    findings = list(file_findings(wheel, sdist))
    remaining = list(release_findings(package_version()))
    if options.release:
        findings += remaining
    else:
        print("\n".join(f"before a {item}" for item in remaining))
    if not options.files_only and not findings:
        findings += check_installation(wheel)
    print("\n".join(findings) if findings else f"{wheel.name}: all checks passed")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
