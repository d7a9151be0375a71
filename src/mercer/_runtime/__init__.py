"""Shared infrastructure: argument checks, memory budget, threads, numba, progress, random seeds."""

from ._arguments import check_choice, is_count
from ._budget import budget_in_bytes, check_budget, in_words, reserve, reserving
from ._jit import (
    JIT_FUNCTIONS,
    JitFunction,
    compile_seconds,
    jit,
    larger,
    number,
    report_compilation,
    smaller,
    word,
)
from ._progress import Progress, Step, hearing, progress
from ._random import generator, random_numbers
from ._stopwatch import Stopwatch
from ._threads import (
    ENTRY_WORK,
    all_blas_threads,
    blas_threads,
    check_threads,
    cut,
    entry_point,
    one_blas_thread,
    ordered_sum,
    quiet,
    run,
    slices,
    thread_count,
    threads,
)

__all__ = [
    "ENTRY_WORK",
    "JIT_FUNCTIONS",
    "JitFunction",
    "Progress",
    "Step",
    "Stopwatch",
    "all_blas_threads",
    "blas_threads",
    "budget_in_bytes",
    "check_budget",
    "check_choice",
    "check_threads",
    "compile_seconds",
    "cut",
    "entry_point",
    "generator",
    "hearing",
    "in_words",
    "is_count",
    "jit",
    "larger",
    "number",
    "one_blas_thread",
    "ordered_sum",
    "progress",
    "quiet",
    "random_numbers",
    "report_compilation",
    "reserve",
    "reserving",
    "run",
    "slices",
    "smaller",
    "thread_count",
    "threads",
    "word",
]
