"""What the end-to-end tests share: counting compilations, and numerical gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bwcompiler.api import compiler
from tests.support.gradcheck import central_differences


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


@pytest.fixture
def numeric() -> Callable[..., np.ndarray]:
    return central_differences
