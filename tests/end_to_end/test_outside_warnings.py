"""What compiled functions read or leave outside of their arguments that they cannot follow warns, and nothing else does."""

from __future__ import annotations

import collections
import io
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import RecompileWarning, StaleValueWarning

X = np.arange(1.0, 4.0)


def test_rebinding_again_and_again_warns() -> None:
    name = ""
    compiled = bw.jit(lambda x: x * len(name))
    with pytest.warns(RecompileWarning, match=r"traced and compiled 16 times; this time because name was rebound\n.*pass name as an arg"):
        for _ in range(16):
            name = name + "+"
            np.testing.assert_allclose(compiled(X), X * len(name))


def test_many_shapes_warn_with_the_difference() -> None:
    compiled = bw.jit(lambda x: x + 1)
    with pytest.warns(RecompileWarning, match=r"x is float64\[16\] after float64\[15\]\n  hint: pad arrays to a few shapes"):
        for n in range(1, 17):
            compiled(np.ones(n))


OLD_GENERATOR, PYTHONS = np.random.RandomState(0), random.Random(0)
NORMAL = np.random.default_rng(0).normal
GENERATOR = np.random.default_rng(0)


def _length_of(name: str) -> int:
    with open(name) as file:
        return len(file.read())


UNREPEATED = {
    "legacy": (lambda x: x + np.random.normal(), "random numbers were drawn from np.random or random"),
    "random": (lambda x: x * random.random(), "random numbers were drawn"),
    "generator": (lambda x: x + GENERATOR.normal(size=3), "GENERATOR gives random numbers while the function is traced"),
    "generator's method": (lambda x: x + NORMAL(size=3), "NORMAL gives random numbers while the function is traced"),
    "old generator": (lambda x: x + OLD_GENERATOR.randn(3), "OLD_GENERATOR gives random numbers while the function is traced"),
    "Python's": (lambda x: x * PYTHONS.random(), "PYTHONS gives random numbers while the function is traced"),
    "clock": (lambda x: x * time.time(), "time.time is called while the function is traced only"),
    "open": (lambda x: x * _length_of(__file__), "open is called while the function is traced only"),
    "loaded": (lambda x: x * np.loadtxt(io.StringIO("2")), "np.loadtxt is called while the function is traced only"),
    "path": (lambda x: x * len(Path(__file__).read_text()), "read_text is called while the function is traced only"),
}


@pytest.mark.parametrize("name", UNREPEATED)
def test_what_cannot_be_read_again_warns(name: str) -> None:
    fun, message = UNREPEATED[name]
    with pytest.warns(StaleValueWarning, match=message) as caught:
        bw.jit(fun)(X)
    assert "test_outside_warnings.py" in str(caught[0].message) and caught[0].filename == __file__


@pytest.mark.parametrize("generator", [np.random.default_rng(0), np.random.RandomState(0), random.Random(0)], ids=lambda one: type(one).__name__)
def test_generators_that_are_arguments(generator: Any) -> None:
    def drawn(rng: Any) -> Any:
        def inside() -> Any:
            return (rng.random if hasattr(rng, "random") else rng.rand)()
        return inside()

    with pytest.warns(StaleValueWarning, match="rng gives random numbers while the function is traced"):
        bw.jit(lambda x, rng: x * drawn(rng))(X, generator)


def test_what_the_caller_reads_is_no_part_of_the_function() -> None:
    def crossing(x: Any) -> Any:
        found = None                               # is put together after the function returned
        for k in range(1, len(x)):
            if x[k] > 1.0:
                found = k
                break
        return found

    text = Path(__file__).read_text()
    assert time.time() > 0 and text
    assert bw.jit(crossing)(np.arange(3.0)) == 2


@pytest.mark.parametrize("expression, warned", [("np.random.rand(3)", True), ("(np.random.rand is None)", False)])
def test_np_random_imported_while_tracing(expression: str, warned: bool) -> None:
    """NumPy imports np.random when it is first named: its first numbers warn, too."""
    script = f"import numpy as np, bwcompiler as bw; bw.jit(lambda x: x * {expression})(np.ones(3))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert ("random numbers were drawn from np.random" in run.stderr) == warned, run.stderr


def test_assignment_outside_warns() -> None:
    calls = 0

    def fun(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x * calls

    with pytest.warns(StaleValueWarning, match="calls is assigned to while the function is traced"):
        bw.jit(fun)(X)


@pytest.mark.parametrize("loops", [1, 100])
def test_state_that_a_call_leaves_behind_warns(loops: int) -> None:
    """A traced value in an attribute, as in an optimiser that remembers its step: the second call would be wrong in silence."""
    class Optimiser:
        step = np.zeros(3)

        def __call__(self, x: Any) -> Any:
            for _ in range(loops):
                self.step = 0.9 * self.step + x
            return self.step

    function = bw.jit(Optimiser())
    with pytest.warns(StaleValueWarning, match=r"self.step is assigned to while the function is traced: compiled calls neither repeat"):
        assert function(X).tolist() == Optimiser()(X).tolist()


def test_attributes_that_are_assigned_to_before_they_are_read_do_not_matter() -> None:
    class Layer:
        output = None

        def __call__(self, x: Any) -> Any:
            self.output = np.tanh(x)
            return self.output * self.output

    function = bw.jit(Layer())
    for x in (X, X + 1):
        np.testing.assert_allclose(function(x), np.tanh(x) ** 2, rtol=1e-15)


CHANGES: dict[str, tuple[Any, Any]] = {
    "append": (lambda x, kept: kept.append(x[0]), []), "item": (lambda x, kept: kept.__setitem__(0, 2 * x[0]), [1.0, 2.0]),
    "key": (lambda x, kept: kept.update(last=x[0]), {}), "inside": (lambda x, kept: kept["a"].append(x[0]), {"a": [1.0]})}


@pytest.mark.parametrize("name", CHANGES)
def test_containers_that_are_arguments_and_change_warn(name: str) -> None:
    change, kept = CHANGES[name]

    def fun(x: Any, kept: Any) -> Any:
        change(x, kept)
        return x[0]

    with pytest.warns(StaleValueWarning, match=r"def fun.*\n  kept(\['a'\])? is changed while the function is traced") as caught:
        bw.jit(fun)(X, kept)
    assert len(caught) == 1


def test_containers_that_are_arguments_and_returned_do_not_warn() -> None:
    def fun(parameters: dict[str, Any]) -> Any:
        parameters["w"] = parameters["w"] - 0.1
        return parameters

    assert bw.jit(fun)({"w": 1.0}) == {"w": 0.9}


def test_lists_that_are_only_written_to_do_not_matter() -> None:
    log: list[Any] = []

    def fun(x: Any) -> Any:
        log.append(x.shape)
        return x

    compiled = bw.jit(fun)
    compiled(X)
    compiled(X)
    assert log == [(3,)]


LOSSES: list[Any] = []
HISTORY: dict[str, Any] = {}
LAST: collections.deque[Any] = collections.deque(maxlen=2)
KEEPING = {
    "LOSSES": lambda x: LOSSES.append(x[0] * 2), "HISTORY": lambda x: HISTORY.setdefault("losses", []).append(x[0]),
    "LAST": lambda x: LAST.append((x[0], "loss"))}


@pytest.mark.parametrize("name", KEEPING)
def test_traced_values_left_in_containers_warn(name: str) -> None:
    def fun(x: Any) -> Any:
        KEEPING[name](x)
        return x

    with pytest.warns(StaleValueWarning, match=rf"\n  {name} keeps traced values that are put into it") as caught:
        bw.jit(fun)(X)
    assert len(caught) == 1 and caught[0].filename == __file__


def test_containers_that_are_emptied_again_do_not_warn() -> None:
    tape: list[Any] = []

    def fun(x: Any) -> Any:
        for k in range(3):
            tape.append(x * k)
        tape.clear()
        return x

    bw.jit(fun)(X)
    assert tape == []
