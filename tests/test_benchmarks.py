"""Every kernel of benchmarks/ runs and is right at a tiny size; what is kept of a sweep over elements grows as they do, and so does the time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from benchmarks.kernels import KERNELS
from benchmarks.loops import loss, main, measure, residual_bytes, table

SIZES = (20, 40, 80, 160)


@pytest.mark.parametrize("name", KERNELS)
def test_value_and_gradient(name: str) -> None:
    function, args = loss(name), KERNELS[name].arguments(9)
    value, gradient = bw.value_and_grad(function)(*args)
    np.testing.assert_allclose(value, function(*args), rtol=1e-12)
    direction = np.random.default_rng(0).normal(size=args[0].shape)
    if name == "triangular_solve":
        direction = np.tril(direction)
    step = 1e-6
    ahead, behind = (function(args[0] + sign * step * direction, *args[1:]) for sign in (1.0, -1.0))
    np.testing.assert_allclose(np.sum(gradient * direction), (ahead - behind) / (2 * step), rtol=1e-6)


@pytest.mark.parametrize("name", ["sweep", "gauss_seidel"])
def test_what_a_sweep_keeps_grows_as_its_elements(name: str) -> None:
    for n in SIZES:
        assert residual_bytes(name, n) <= 8 * (n * n + 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sweep", "gauss_seidel", "alignment"])
def test_the_time_of_a_gradient_grows_as_the_elements(name: str) -> None:
    def least(call: Any) -> float:
        times = []
        for _ in range(30):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
        return min(times)

    gradient = bw.value_and_grad(loss(name))
    per_element = []
    for n in SIZES:
        args = KERNELS[name].arguments(n)
        gradient(*args)
        per_element.append(least(lambda args=args: gradient(*args)) / n**2)
    assert max(per_element[1:]) <= 2.5 * per_element[1]


def test_the_table_has_a_line_per_measurement() -> None:
    rows = list(measure("numpy", ["heat", "sweep"], [4, 5]))
    lines = table(rows).splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["sweep", "4", "numpy"], ["sweep", "5", "numpy"], ["heat", "4", "numpy"], ["heat", "5", "numpy"]]


def test_peers_are_optional(capsys: pytest.CaptureFixture[str]) -> None:
    main(["heat", "--sizes", "4", "--frameworks", "no_such_framework"])
    assert "is not installed" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["no_such_kernel"])
