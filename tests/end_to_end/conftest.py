"""What the end-to-end tests share: counting compilations, and numerical gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bwcompiler.api import compiler


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the programs for which code is generated while the test runs, from an empty cache."""
    names: list[str] = []
    build = compiler._build

    def counted(graph: Any, base: Any, name: str) -> Any:
        names.append(name)
        return build(graph, base, name)

    monkeypatch.setattr(compiler, "_build", counted)
    monkeypatch.setattr(compiler, "_cache", type(compiler._cache)())
    yield names


def central_differences(fun: Callable[[np.ndarray], Any], x: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """The derivative of fun at x, of shape output.shape + x.shape."""
    columns = []
    for k in range(x.size):
        step = np.zeros(x.size)
        step[k] = eps
        step = step.reshape(x.shape)
        columns.append((np.asarray(fun(x + step)) - np.asarray(fun(x - step))) / (2 * eps))
    shape = np.shape(columns[0])
    return np.moveaxis(np.array(columns), 0, -1).reshape(*shape, *x.shape)


@pytest.fixture
def numeric() -> Callable[..., np.ndarray]:
    return central_differences
