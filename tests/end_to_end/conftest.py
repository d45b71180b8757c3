"""What the end-to-end tests share: counting compilations, and numerical gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bwcompiler.api.programs import executables
from tests.support.gradcheck import central_differences


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the programs for which code is generated while the test runs, from an empty cache."""
    names: list[str] = []
    build = executables._build

    def counted(graph: Any, into: Any, name: str, target: Any) -> Any:
        names.append(name)
        return build(graph, into, name, target)

    monkeypatch.setattr(executables, "_build", counted)
    monkeypatch.setattr(executables, "_cache", type(executables._cache)())
    yield names


@pytest.fixture
def numeric() -> Callable[..., np.ndarray]:
    return central_differences
