"""Memory of programs that nobody uses any more, and of what every compilation leaves behind."""

from __future__ import annotations

import gc
import os
import types
import weakref
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs import executables
from bwcompiler.api.programs.executables import Compiled, Executables, kept_bytes
from bwcompiler.api.programs.kept import forget
from bwcompiler.frontend.tracing.provenance import source
from bwcompiler.runtime import jit
from tests.support.targets import HOST


def resident_bytes() -> int:
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")


def growth(run, count: int) -> float:
    """Bytes per run, once the memory of the first ones is in use."""
    for number in range(count):
        run(number)
    before = resident_bytes()
    for number in range(count):
        run(count + number)
    return (resident_bytes() - before) / count


@needs_proc
def test_llvm_leaves_nothing_behind() -> None:
    text = "define i64 @f(i64 %x) {\n  %y = add i64 %x, NUMBER\n  ret i64 %y\n}\n"
    assert growth(lambda number: jit.optimise(text.replace("NUMBER", str(number)), HOST), 100) < 10_000


@needs_proc
@pytest.mark.slow
def test_fresh_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that differ in a constant, many more than are kept."""
    monkeypatch.setenv("BW_CACHE", "0")
    monkeypatch.setattr(executables, "_cache", Executables(16))
    x = np.ones(8)
    assert growth(lambda k: bw.value_and_grad(lambda x: np.sum(np.sin(x) * (k + 0.25) + x * x))(x), 300) < 30_000


def compiled(constant: float) -> Compiled:
    x = np.ones(3)
    function = bw.jit(lambda x: x * constant)
    return function.specialised(function._arguments((x,), {})).bound.compiled


def test_executables_are_bounded_by_bytes_and_count() -> None:
    entries = [compiled(1.5 + number) for number in range(6)]
    one = kept_bytes(entries[0])
    kept = Executables(count=100, limit=3 * one)
    for number, entry in enumerate(entries):
        kept.put((str(number), ()), entry)
    assert len(kept) == 3 and kept.size == sum(kept_bytes(entry) for entry in entries[3:]) <= 3 * one
    assert kept.get(("2", ())) is None and kept.get(("3", ())) is entries[3]
    kept.put(("6", ()), entries[0])                 # 4 was used longest ago
    assert kept.get(("4", ())) is None and kept.get(("3", ())) is entries[3]
    few = Executables(count=2)
    for number, entry in enumerate(entries):
        few.put((str(number), ()), entry)
    assert len(few) == 2
    few.clear()
    assert len(few) == few.size == 0


def test_what_is_kept_counts_the_bodies_of_loops():
    def steps(x):
        for _ in range(50):
            x = np.sin(x) * np.cos(x[::-1]) + np.cumsum(x) * 0.1
        return x

    function, x = bw.jit(steps), np.ones(5)
    made = function.specialised(function._arguments((x,), {})).bound.compiled
    assert len(made.lowered.graph) < 5
    assert kept_bytes(made) > 10 * 2000



def test_an_executable_larger_than_all_is_kept_alone() -> None:
    kept = Executables(limit=1)
    first, second = compiled(2.5), compiled(3.5)
    kept.put(("first", ()), first)
    kept.put(("second", ()), second)
    assert len(kept) == 1 and kept.get(("second", ())) is second


@pytest.mark.parametrize("make", [
    lambda x: bw.jit(lambda x: np.sin(x) * 0.6875), lambda x: bw.value_and_grad(lambda x: np.sum(x**3) * 0.6875),
    lambda x: bw.compile(lambda x: np.cos(x) * 0.6875, x)], ids=["jit", "value_and_grad", "compile"])
def test_a_dropped_function_is_freed(make, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all it made, once it and the executable are out of the caches: graph, stages, machine code."""
    monkeypatch.setattr(executables, "_cache", Executables())
    seen = []
    original = executables._build

    def build(*args):
        result = original(*args)
        seen.extend(map(weakref.ref, (result.lowered.graph, result.lowered, result.executable, result.executable._code)))
        return result

    monkeypatch.setattr(executables, "_build", build)
    x = np.ones(4)
    function = make(x)
    function(x)
    owner = weakref.ref(function)
    assert len(seen) == 4 and all(reference() is not None for reference in seen)
    del function
    executables._cache.clear()
    forget()
    gc.collect()
    assert owner() is None and [reference() for reference in seen] == [None] * 4


def test_positions_of_code_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code made again and again is not kept for ever, and no line is taken for another's."""
    monkeypatch.setattr(source, "_LIMIT", 8)
    for number in range(40):
        code = compile("\n" * number + "place = current_source()", f"cell{number}.py", "exec")
        names = {"current_source": source.current_source}
        exec(code, names)
        assert (names["place"].file, names["place"].line) == (f"cell{number}.py", number + 1)
    assert len(source._roles) <= 8 and len(source._sources) <= 8
    assert all(isinstance(kept, types.CodeType) for kept, _ in source._sources.values())


@pytest.mark.parametrize("made", [bw.jit, bw.grad, lambda f: lambda x: bw.compile(f, x)(x), lambda f: lambda x: bw.compile(f, x).vjp(x)])
def test_an_arena_that_is_too_large(made: Any) -> None:
    def loss(a: Any) -> Any:
        return np.sum(np.sort(np.outer(a, a), axis=1)[:, 0])

    with pytest.raises(MemoryError) as caught:
        made(loss)(np.zeros(3_000_000))
    message = str(caught.value)                    # NumPy's own for a result or residual
    assert "(3000000, 3000000)" in message and ("test_memory.py" in message or message.startswith("Unable to allocate 65.5 TiB"))
    assert "unable to allocate" not in message or "np.sort(" in message
