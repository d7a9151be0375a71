"""Reading a repr back, without eval."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from ..kernels import Kernel

__all__ = ["parts", "read", "vocabulary"]


def parts(kernel: Kernel) -> list[Any]:
    """Return the kernel, the kernels and functions inside it, and the values of all fields."""
    return [kernel, *kernel.get_params(deep=True).values()]


def vocabulary(kernel: Kernel) -> dict[str, Any]:
    """Return what the repr may mention by name: its classes and its functions."""
    names: dict[str, Any] = {"inf": np.inf, "nan": np.nan}
    for part in parts(kernel):
        if callable(part) and hasattr(part, "__name__"):
            names[part.__name__] = part
        else:
            names[type(part).__name__] = type(part)
    return names


def read(text: str, names: dict[str, Any]) -> Any:
    """Evaluate an expression of literals, names, sequences and calls, and of nothing else."""

    def value(tree: ast.AST) -> Any:
        match tree:
            case ast.Name(id=name):
                return names[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.Tuple(elts=items):
                return tuple(map(value, items))
            case ast.List(elts=items):
                return list(map(value, items))
            case ast.Dict(keys=keys, values=values):
                return {value(k): value(v) for k, v in zip(keys, values, strict=True) if k}
            case ast.Call(func=function, args=args, keywords=keywords):
                options = {str(word.arg): value(word.value) for word in keywords}
                return value(function)(*map(value, args), **options)
        return ast.literal_eval(tree)

    return value(ast.parse(text, mode="eval").body)
