"""Modules in parts: the same functions and numbers, whatever the parts are, and each is compiled while the next one is written."""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs import executables
from bwcompiler.compiler.pipeline import lower
from bwcompiler.lowering import calls, module_parts
from bwcompiler.runtime import jit, object_cache
from bwcompiler.runtime.program_parts import ProgramParts

X = np.linspace(-1.0, 1.0, 64 * 48).reshape(64, 48)
GOOD = "define void @f() {\n  ret void\n}\n"
TARGET = bw.jit(np.sin).lower(0.5).lowered().target


def _many(x, y):
    """Kernels, products, loops in loops, mathematics, a library call, checks."""
    z = np.tanh(x @ y.T) + np.exp(-x @ x.T)
    for k in range(20):
        z = np.sin(z @ z) / (1.0 + k) + np.cumsum(z, axis=k % 1)
    recurrence = np.zeros_like(x[:24, 0])
    for i in range(1, 24):
        for j in range(i):
            recurrence[i] = np.tanh(recurrence[i] + 0.5 * recurrence[j] + y[i, 3] * np.exp(x[j, 2]))
    total = np.sum(np.linalg.solve(np.eye(64) + 0.01 * z, x)) + np.sum(np.sort(y, axis=1)[:, 3:] ** 2.5)
    return total + np.sum(np.log1p(np.abs(np.fft.rfft(x, axis=1)))) + np.sum(recurrence)


def _parts(fun: Any, *args: Any, loops: bool = True) -> tuple[str, list[str]]:
    """The text of its derivative, and the parts, in the order in which they came."""
    lowered = bw.grad(fun, autoloop=loops).lower(*args).lowered()
    parts: list[str] = []
    again = lower(lowered.graph, lowered.into, lowered.target, begin=parts.append)
    return again.program.text, parts


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_parts, "LEAST", 2_000)


@functools.cache
def _parts_of_many() -> tuple[str, list[str]]:
    """For tests with `small_parts`."""
    return _parts(_many, X, X)


def _defined(text: str) -> list[str]:
    return re.findall(r"^define .*?@([\w.]+)\(", text, re.MULTILINE)


def _declared(text: str) -> set[str]:
    return set(re.findall(r"^declare .*?@([\w.]+)\(", text, re.MULTILINE))


def test_small_modules_are_alone() -> None:
    text, parts = _parts(lambda x: np.sum(np.sin(x)), X)
    assert len(parts) == 1 and Counter(_defined(parts[0])) == Counter(_defined(text))


@pytest.mark.usefixtures("small_parts")
def test_every_function_is_in_one_part() -> None:
    text, parts = _parts_of_many()
    assert len(parts) > 6 and _parts(_many, X, X)[1] == parts
    times = Counter([name for part in parts for name in _defined(part)])
    written_once = {name for name in _defined(text) if not re.search(rf"^define .*@{re.escape(name)}\(.*(#2|alwaysinline)", text, re.MULTILINE)}
    mathematics = {name for name in written_once if name.startswith("bw.")}      # inlined where a part has few calls of it
    assert {times[name] for name in written_once - mathematics} == {1} and mathematics and "bw_program" in written_once
    assert times.keys() <= set(_defined(text))


@pytest.mark.usefixtures("small_parts")
def test_loops_come_before_the_program_that_calls_them() -> None:
    _, parts = _parts_of_many()
    number = next(number for number, part in enumerate(parts) if "bw_program" in _defined(part))
    assert any(re.search(r"^define .*@loop\d+\(", part, re.MULTILINE) for part in parts[:number - 1])


@pytest.mark.usefixtures("small_parts")
def test_parts_are_valid_and_name_nothing_else_outside() -> None:
    text, parts = _parts_of_many()
    shown = {name for part in parts for name in re.findall(r"^define (?!internal).*?@([\w.]+)\(", part, re.MULTILINE)}
    for part in parts:
        llvm.parse_assembly(part, llvm.create_context()).verify()
        assert _declared(part) <= _declared(text) | (shown - set(_defined(part)))
    assert len([name for part in parts for name in _defined(part) if name in shown]) == len(shown)


@pytest.mark.usefixtures("small_parts")
def test_programs_that_much_is_written_into_are_several_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which are in several parts; a status of one of them is that of the program."""
    monkeypatch.setattr(calls, "TABLE_CALLS", 1 << 30)

    def numbers(x, k):
        for number in range(30):
            x = np.where(np.arange(3) == number % 3, np.sin(x[::-1]) * x, x) + x[np.array([number % 3, 0, k])] * 0.1
        return np.sum(x)

    _, parts = _parts(numbers, np.ones(3), 1, loops=False)
    homes = [part for part in parts if re.search(r"^define .*@bw_program\.part\d+\(", part, re.MULTILINE)]
    assert len(homes) > 1
    compiled = bw.value_and_grad(numbers, 0, autoloop=False)
    x = np.array([0.3, 0.4, 0.5])
    value, _ = compiled(x, 2)
    assert value == pytest.approx(numbers(x, 2), rel=1e-13)
    bw.check_grads(lambda x: numbers(x, 2), (x,), order=1)
    with pytest.raises(IndexError):
        compiled(x, 7)


@pytest.mark.usefixtures("small_parts")
def test_tables_stay_whole() -> None:
    """What is written into a table is written once, however often it is called."""
    def repeated(x):
        for number in range(120):
            x = np.where(np.arange(3) == number % 3, np.sin(x[::-1]) * x, x) + x[np.array([number % 3, 0, 1])] * 0.1
        return np.sum(x)

    text, parts = _parts(repeated, np.ones(3), loops=False)
    assert "bw_program.part0" not in text and sum(map(len, parts)) < 2 * len(text)


def test_comments_name_nothing() -> None:
    """They have the names of users' variables, and lines of their files."""
    assert module_parts.symbols_in("; @nobody\n  call void @f() ; me@example.org, f@decorated, x @y\n") == ["f"]


@pytest.mark.parametrize("loops", [True, False])
def test_results_are_the_same_bits(monkeypatch: pytest.MonkeyPatch, loops: bool) -> None:
    def results(least: int) -> tuple[int, list[Any]]:
        monkeypatch.setattr(module_parts, "LEAST", least)
        began: list[str] = []
        begin = ProgramParts.begin
        with monkeypatch.context() as patch:
            patch.setattr(ProgramParts, "begin", lambda self, text: began.append(text) or begin(self, text))
            executables._cache.clear()
            compiled = bw.value_and_grad(lambda x, y: _many(x, y), (0, 1), autoloop=loops)
            compiled.clear_cache()
            value, gradients = compiled(X, X + 0.5)
        return len(began), [value, *gradients]

    count, whole = results(1 << 30)
    assert count == 1
    count, found = results(1_000)
    assert count > 10
    for one, other in zip(whole, found, strict=True):
        np.testing.assert_array_equal(one, other)


def _codes(texts: list[str]) -> list[bytes]:
    parts = ProgramParts(TARGET)
    for text in texts:
        parts.begin(text)
    return parts.codes()


@pytest.mark.usefixtures("small_parts")
def test_parts_that_are_known_are_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _, parts = _parts_of_many()
    made = _codes(parts)
    monkeypatch.setattr(jit, "optimise", lambda *_: pytest.fail("compiled again"))
    assert _codes(parts) == made
    object_cache.memory.clear()
    assert _codes(parts) == made                   # from disk


def test_an_invalid_part_is_an_error() -> None:
    with pytest.raises(bw.errors.InternalError, match="invalid LLVM text"):
        _codes([GOOD, "define void @g() {\n  ret i32 0\n}\n", GOOD])
    assert len(_codes([GOOD] * 12)) == 12          # more than there are lanes


def test_without_other_threads_the_caller_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an interpreter that ends, which starts none."""
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("can't start new thread")

    texts = [f"define i32 @f{k}() {{\n  ret i32 {k}\n}}\n" for k in range(3)]
    expected = _codes(texts)
    monkeypatch.setattr("threading.Thread.start", refuse)
    object_cache.memory.clear()
    assert _codes(texts) == expected
