"""Run a `mercer` command and record its folds: `python -m benchmarks._recorded_shell FILE ARGS`.

FILE receives a digest of the rows of each fold of the first cross-validation.  Everything else is
as in the shell.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Folds = list[tuple[np.ndarray, np.ndarray]]


def digest(folds: Folds) -> list[str]:
    """Return a digest of the training rows and the test rows of each fold."""
    return [
        hashlib.sha256(np.concatenate([train, [-1], test]).astype(np.int64).tobytes()).hexdigest()
        for train, test in folds
    ]


def record_folds(path: Path) -> None:
    """Make `KFold` and `StratifiedKFold` write the digest of their first folds to a file."""
    from sklearn.model_selection import KFold, StratifiedKFold

    for cls in (KFold, StratifiedKFold):
        split = cls.split

        def recorded(*args: Any, _split: Any = split, **options: Any) -> Iterator[Any]:
            folds = list(_split(*args, **options))
            if not path.exists():
                path.write_text(json.dumps(digest(folds)))
            return iter(folds)

        cls.split = recorded


if __name__ == "__main__":
    from mercer.app.cli import main

    record_folds(Path(sys.argv[1]))
    main(sys.argv[2:])
