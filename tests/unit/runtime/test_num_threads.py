"""`bw.set_num_threads`: kept, checked, read from the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import bwcompiler as bw


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = bw.get_num_threads()
    yield
    bw.set_num_threads(before)


def test_number_is_kept_and_products_stay_right() -> None:
    x = np.random.default_rng(0).standard_normal((200, 200))
    product = bw.jit(lambda x: x @ x)
    for count in (1, 2, 3):
        bw.set_num_threads(count)
        assert bw.get_num_threads() == count
        np.testing.assert_allclose(product(x), x @ x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [0, -1])
def test_too_few_threads(count: int) -> None:
    with pytest.raises(ValueError, match="at least one thread"):
        bw.set_num_threads(count)


@pytest.mark.parametrize("count", [1.5, "2", None])
def test_number_that_is_none(count: object) -> None:
    with pytest.raises(TypeError):
        bw.set_num_threads(count)  # type: ignore[arg-type]


def imported(number: str) -> subprocess.CompletedProcess[str]:
    code = "import bwcompiler as bw; print(bw.get_num_threads())"
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, "BW_NUM_THREADS": number},
                          capture_output=True, text=True, timeout=60, check=False)


def test_environment_variable() -> None:
    assert imported("1").stdout.strip() == "1"
    found = imported("many")
    assert found.returncode != 0 and "BW_NUM_THREADS='many'" in found.stderr
