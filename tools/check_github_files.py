"""Check the files that GitHub reads: workflows, Dependabot, issue forms, CITATION.cff.

Run by `make lint`.  check-jsonschema compares each file with the schema of its format, and zizmor
searches the workflows for security problems; its exceptions are in .github/zizmor.yml.  Both work
without a network.  Exits with status 1 if there is a finding.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent  # with the commands of the same environment

# A schema of check-jsonschema, and the files of this format.
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "custom.github-workflows-require-timeout": ".github/workflows/*.yml",
    "vendor.dependabot": ".github/dependabot.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/*.yml",
    "vendor.citation-file-format": "CITATION.cff",
}


def commands(root: Path) -> list[list[str]]:
    """Return the commands that check the repository in the folder `root`."""
    result = []
    for schema, pattern in SCHEMAS.items():
        paths = sorted(path.relative_to(root).as_posix() for path in root.glob(pattern))
        result.append(["check-jsonschema", "--builtin-schema", schema, *paths])
    # The default of zizmor is to audit online as well, if the environment has a GitHub token.
    result.append(["zizmor", "--offline", "--quiet", "--no-progress", "--persona=pedantic", "."])
    return result


def findings(command: list[str], root: Path) -> str:
    """Run a check; return its output if it fails, or an empty string."""
    name, *arguments = command
    done = subprocess.run([BIN / name, *arguments], cwd=root, capture_output=True, text=True)
    return f"{' '.join(command)}\n{done.stdout}{done.stderr}" if done.returncode else ""


def main() -> int:
    """Run all checks, also after a failure; print the output of those that fail."""
    checks = commands(ROOT)
    failures = [text for command in checks if (text := findings(command, ROOT))]
    print(
        *failures, f"check_github_files: {len(failures)} of {len(checks)} checks failed", sep="\n"
    )
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
