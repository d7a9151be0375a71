"""Progress output: one updated line on a terminal, a few lines in a file."""

import io
import re
import threading
from types import SimpleNamespace

import pytest

from mercer._core import Progress, ProgressStep, progress, run_in_threads
from mercer._core import _progress as module


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def screen(self):
        """Return the lines that a terminal would show."""
        lines = [""]
        for token in re.findall(r"\r|\n|\x1b\[K|[^\r\n\x1b]+", self.getvalue()):
            if token == "\n":
                lines.append("")
            elif token == "\r":
                lines[-1] = ""  # every update writes the whole line and clears the rest
            elif token != "\x1b[K":
                lines[-1] += token
        return lines


@pytest.fixture
def terminal(monkeypatch):
    made = Terminal()
    # pytest replaces sys.stdout, too
    monkeypatch.setattr(module, "sys", SimpleNamespace(stdout=made))
    monkeypatch.setattr(module, "_REFRESH_SECONDS", 0.0)
    return made


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    return now


def points(log, n=1_000_000, block=4184):
    for done in range(block, n, block):
        log(ProgressStep(f"{done} of {n} points", done, n))


def test_a_file_gets_a_line_for_each_tenth(capsys):
    with Progress("KernelPCA") as log:
        points(log)
        log("done")
    lines = capsys.readouterr().out.splitlines()
    assert 9 <= len(lines) <= 12
    assert lines[0].startswith("[KernelPCA] 100416 of 1000000")
    assert lines[-2:] == ["[KernelPCA] 999976 of 1000000 points", "[KernelPCA] done"]
    assert not any(c in "".join(lines) for c in "\r\x1b")


def test_steps_without_a_total_are_printed_ever_more_rarely(capsys):
    with Progress("SVC") as log:
        for i in range(1, 101):
            log(ProgressStep(f"step {i}"))
    told = [int(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert told == [1, 2, 4, 8, 16, 32, 64, 100]


def test_a_new_sequence_starts_again(capsys):
    with Progress("M") as log:
        for fold in range(2):
            for done in (50, 100):
                log(ProgressStep(f"fold {fold}: {done}", done, 100))
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_a_terminal_has_one_line(terminal, clock):
    with Progress("KernelPCA") as log:
        clock[0] = 10.0
        log(ProgressStep("250 of 1000 points", 250, 1000))
        bar = "#" * 5 + "-" * 15
        wanted = f"[KernelPCA] 250 of 1000 points [{bar}] 25%, 25/s, 0:30 left"
        assert terminal.screen() == [wanted]
        clock[0] = 20.0
        log(ProgressStep("500 of 1000 points", 500, 1000))
        assert len(terminal.screen()) == 1
        log("news")
    shown = terminal.screen()
    assert len(shown) == 3 and shown[1:] == ["[KernelPCA] news", ""]


def test_a_terminal_is_not_written_to_all_the_time(terminal, clock, monkeypatch):
    monkeypatch.setattr(module, "_REFRESH_SECONDS", 0.1)
    with Progress("M") as log:
        for i in range(1000):
            clock[0] += 0.001
            log(ProgressStep(f"step {i}"))
    assert terminal.getvalue().count("\r") <= 13
    assert terminal.screen() == ["[M] step 999", ""]


def test_a_long_line_is_cut(terminal, monkeypatch):
    monkeypatch.setattr(module, "_terminal_width", lambda: 30)
    with Progress("M") as log:
        log(ProgressStep("x" * 100))
    assert [len(line) for line in terminal.screen()] == [29, 0]


def test_ctrl_c_ends_the_line(terminal):
    with pytest.raises(KeyboardInterrupt), Progress("M") as log:
        log(ProgressStep("step 1"))
        raise KeyboardInterrupt
    assert terminal.screen() == ["[M] step 1", ""]
    assert Progress._open is None


def test_two_do_not_share_a_line(terminal):
    with Progress("outer") as outer, Progress("inner") as inner:
        outer(ProgressStep("fold 1"))
        inner(ProgressStep("step 1"))
        inner("end")
    assert terminal.screen() == ["[outer] fold 1", "[inner] step 1", "[inner] end", ""]


@pytest.mark.parametrize("kind", ["terminal", "file"])
def test_threads_do_not_break_lines(kind, monkeypatch):
    out = Terminal() if kind == "terminal" else io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    done, lock = [0], threading.Lock()
    with progress("M") as log:

        def task(job):
            with progress("M") as same:
                assert same is log
            with lock:
                done[0] += 1
                log(ProgressStep(f"{done[0]} of 200 tasks", done[0], 200))

        run_in_threads(task, range(200), n_threads=4)
    lines = out.screen()[:-1] if kind == "terminal" else out.getvalue().splitlines()
    assert all(re.fullmatch(r"\[M\] \d+ of 200 tasks( \[[#-]+\].*)?", line) for line in lines)
    assert lines[-1].startswith("[M] 200 of 200")
    assert len(lines) == (1 if kind == "terminal" else 10)


def test_nothing_is_written_unless_requested(capsys):
    with progress("M", 0) as log:
        assert log is None
    assert capsys.readouterr().out == ""


def test_times():
    assert [module._format_seconds(s) for s in (0.4, 61, 3725)] == ["0:00", "1:01", "1:02:05"]


def test_a_message_ends_the_line_of_another_name(terminal):
    with Progress("outer") as outer, Progress("inner") as inner:
        inner(ProgressStep("step 1"))
        outer("fold 1")
    assert terminal.screen() == ["[inner] step 1", "[outer] fold 1", ""]
