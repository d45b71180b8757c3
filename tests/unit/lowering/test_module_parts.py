"""Large modules in parts: the same functions and numbers, whatever the parts are."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs import executables
from bwcompiler.lowering import module_parts as parts_of
from bwcompiler.lowering.module_parts import module_parts
from bwcompiler.runtime import jit, object_cache

X = np.linspace(-1.0, 1.0, 64 * 48).reshape(64, 48)


def _many(x, y):
    """Kernels, products, a loop, mathematics, a library call, checks."""
    z = np.tanh(x @ y.T) + np.exp(-x @ x.T)
    for k in range(20):
        z = np.sin(z @ z) / (1.0 + k) + np.cumsum(z, axis=k % 1)
    total = np.sum(np.linalg.solve(np.eye(64) + 0.01 * z, x)) + np.sum(np.sort(y, axis=1)[:, 3:] ** 2.5)
    return total + np.sum(np.log1p(np.abs(np.fft.rfft(x, axis=1))))


def _text(fun: Any, *args: Any) -> str:
    return bw.grad(fun).as_text("llvm", *args)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_of, "LEAST", 2_000)


def _defined(text: str) -> list[str]:
    return re.findall(r"^define .*?@([\w.]+)\(", text, re.MULTILINE)


def test_small_modules_are_alone() -> None:
    text = _text(lambda x: np.sum(np.sin(x)), X)
    assert module_parts(text) == (text,)


@pytest.mark.usefixtures("small_parts")
def test_every_function_is_in_one_part() -> None:
    text = _text(_many, X, X)
    parts = module_parts(text)
    assert len(parts) == parts_of.MOST and module_parts(text) == parts
    times = Counter([name for part in parts for name in _defined(part)])
    assert times.keys() == set(_defined(text))
    written_once = {name for name in _defined(text) if not re.search(rf"^define .*@{re.escape(name)}\(.*(#2|alwaysinline)", text, re.MULTILINE)}
    assert {times[name] for name in written_once} == {1} and "bw_program" in written_once
    own = [sum([len(body) for body in re.findall(r"^define .*?^}", part, re.MULTILINE | re.DOTALL)]) for part in parts]
    assert max(own) < 0.6 * sum(own)


@pytest.mark.usefixtures("small_parts")
def test_parts_are_valid_and_name_nothing_else_outside() -> None:
    text = _text(_many, X, X)
    outside = set(re.findall(r"^declare .*?@([\w.]+)\(", text, re.MULTILINE))
    parts = module_parts(text)
    shown = {name for part in parts for name in re.findall(r"^define (?!internal).*?@([\w.]+)\(", part, re.MULTILINE)}
    for part in parts:
        llvm.parse_assembly(part, llvm.create_context()).verify()
        declared = set(re.findall(r"^declare .*?@([\w.]+)\(", part, re.MULTILINE))
        assert declared <= outside | (shown - set(_defined(part)))


@pytest.mark.usefixtures("small_parts")
def test_comments_name_nothing() -> None:
    """They have the names of users' variables, and lines of their files."""
    text = _text(_many, X, X)
    said = "; @nobody\n" + text.replace("{\nentry:", "{\n; me@example.org, f@decorated, x @y\nentry:")
    parts = module_parts(said)
    assert "x @y" in said and len(parts) == parts_of.MOST
    for part in parts:
        llvm.parse_assembly(part, llvm.create_context()).verify()


@pytest.mark.parametrize("loops", [True, False])
def test_results_are_the_same_bits(monkeypatch: pytest.MonkeyPatch, loops: bool) -> None:
    def results() -> list[Any]:
        executables._cache.clear()
        compiled = bw.value_and_grad(lambda x, y: _many(x, y), (0, 1), autoloop=loops)
        compiled.clear_cache()
        value, gradients = compiled(X, X + 0.5)
        return [value, *gradients]

    monkeypatch.setattr(parts_of, "LEAST", 1 << 30)
    whole = results()
    monkeypatch.setattr(parts_of, "LEAST", 1_000)
    compiled: list[int] = []
    real = jit.optimise_parts
    monkeypatch.setattr(jit, "optimise_parts", lambda texts, target: compiled.append(len(texts)) or real(texts, target))
    for one, other in zip(whole, results(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert compiled == [parts_of.MOST]


@pytest.mark.usefixtures("small_parts")
def test_parts_that_are_known_are_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = module_parts(_text(_many, X, X - 0.25))
    target = bw.jit(np.sin).lower(0.5).lowered().target
    made = object_cache.objects_for(parts, target)
    monkeypatch.setattr(jit, "optimise_parts", lambda *_: pytest.fail("compiled again"))
    assert object_cache.objects_for(parts, target) == made
    object_cache.memory.clear()
    assert object_cache.objects_for(parts, target) == made         # from disk


def test_an_invalid_part_is_an_error() -> None:
    good = "define void @f() {\n  ret void\n}\n"
    target = bw.jit(np.sin).lower(0.5).lowered().target
    with pytest.raises(bw.errors.CompileError, match="invalid LLVM text"):
        jit.optimise_parts([good, "define void @g() {\n  ret i32 0\n}\n", good], target)
    assert len(jit.optimise_parts([good] * 6, target)) == 6         # more than there are lanes
