"""Reading a repr back, without eval."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..kernels import Kernel

__all__ = ["nodes", "read", "vocabulary"]


def nodes(value: Any) -> Iterator[Any]:
    """Yield everything inside a kernel: nodes, children, and the values of their fields."""
    yield value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from nodes(getattr(value, field.name))
        return
    if hasattr(value, "get_params"):  # scikit-learn's
        value = value.get_params(deep=False)
    if isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from nodes(item)


def vocabulary(kernel: Kernel) -> dict[str, Any]:
    """Return what the repr may mention by name: its classes and its functions."""
    names: dict[str, Any] = {"inf": np.inf, "nan": np.nan}
    for part in nodes(kernel):
        if callable(part) and hasattr(part, "__name__"):
            names[part.__name__] = part
        else:
            names[type(part).__name__] = type(part)
    return names


def read(text: str, names: dict[str, Any]) -> Any:
    """Evaluate an expression of constants, names, sequences and calls, and of nothing else."""

    def value(tree: ast.AST) -> Any:
        match tree:
            case ast.Constant(value=constant):
                return constant
            case ast.Name(id=name):
                return names[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.Tuple(elts=items):
                return tuple(value(item) for item in items)
            case ast.List(elts=items):
                return [value(item) for item in items]
            case ast.Dict(keys=keys, values=values):
                return {value(k): value(v) for k, v in zip(keys, values, strict=True) if k}
            case ast.Call(func=function, args=args, keywords=keywords):
                options = {str(word.arg): value(word.value) for word in keywords}
                return value(function)(*map(value, args), **options)
        raise ValueError(f"{ast.unparse(tree)} is not part of a repr")

    return value(ast.parse(text, mode="eval").body)
