"""Files that are written on different platforms, by different processes, have the same bytes."""

import os
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mercer.tables import Table, read_table
from mercer.tables._open_table import _temporary_file
from mercer.tables._table import table_writer

TABLE = Table({"a": np.array([0.1, 2.0]), "b": np.array(["x", 'y, "z"'], dtype=object)})


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.json", "t.jsonl", "t.tsv", "t.npz"])
def test_bytes_do_not_depend_on_platform_and_process(name, tmp_path, monkeypatch):
    contents = []
    for platform, separator, process in (("linux", "\n", 1), ("win32", "\r\n", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(os, "linesep", separator)
            patch.setattr(sys, "platform", platform)
            patch.setattr(os, "getpid", lambda process=process: process)
            with table_writer(tmp_path / name) as writer:
                writer.write(TABLE)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    assert b"\r" not in contents[0] or name.endswith((".gz", ".npz"))


def test_temporary_files_are_closed_before_they_are_read(tmp_path):
    """Windows does not open a file twice if it is deleted when it is closed."""
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("t.csv", "a,b\n1,2\n")
    assert [list(read_table(path).columns) for _ in range(2)] == [["a", "b"]] * 2
    with _temporary_file("-t.csv") as (file, copy):
        file.write(b"content")
    assert file.closed and copy.read_bytes() == b"content"
    assert copy.name.endswith("-t.csv") and Path(tempfile.gettempdir()) in copy.parents
