"""The entry where programs fail, run in several threads, or are dropped: errors, arenas, references and memory."""

from __future__ import annotations

import contextlib
import gc
import resource
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bwcompiler.ir.contracts.call_signature import Container, Leaf
from bwcompiler.ir.contracts.program_interface import ARENA_ERROR
from bwcompiler.ir.types import F64, tensor
from bwcompiler.runtime.executable import Executable
from tests.unit.runtime.programs import (
    NESTED,
    NESTED_TEXT,
    VECTOR,
    ProgramError,
    X,
    Y,
    Z,
    load,
    loop,
    native,
    nested_arguments,
    program,
    raise_error,
    slow_path,
    store,
    sum_of,
    vectors,
)

# --- arenas, errors, threads ------------------------------------------------------------------------------------------

FAIL = program(
    3,
    """
  %bad = load double, ptr %p0
  %is.bad = fcmp olt double %bad, 0.0
  store i64 7, ptr %arena
  %second = getelementptr i64, ptr %arena, i64 1
  store i64 -3, ptr %second
  br i1 %is.bad, label %fail, label %good
fail:
  ret i32 5
good:
  ret i32 0""",
)


@pytest.mark.parametrize("arena_bytes", [0, 100, 10**6])
@pytest.mark.parametrize("release_gil", [False, True])
def test_error_code_raises(bind: Callable[..., Any], arena_bytes: int, release_gil: bool) -> None:
    run = bind(FAIL, vectors(2, arena_bytes=arena_bytes, release_gil=release_gil))
    for _ in range(3):
        with pytest.raises(ProgramError) as caught:
            run(X - 1, Y)
        assert caught.value.args == (5, (7, -3, 0, 0, 0, 0, 0, 0))
        assert run(X, Y).shape == (5,)  # callable again


def test_error_that_is_not_raised() -> None:
    """What follows takes the call, as if the form had not fitted."""
    executable, asked = Executable(FAIL, vectors(2)), []
    run = executable.bind(lambda *args: ("next", *args), lambda code, record: asked.append(code))
    x = X - 1
    for _ in range(3):
        found = run(x, Y)
        assert found[0] == "next" and found[1] is x and found[2] is Y
        assert run(X, Y).shape == (5,)
    assert asked == [5, 5, 5]
    with pytest.raises(SystemError, match="native code failed, but raise_error\\(\\) returned"):
        executable.run([x, Y], lambda code, record: None)


def test_exception_of_the_program_itself() -> None:
    text = program(3, "  %e = call ptr @PyErr_NoMemory()\n  ret i32 1", "declare ptr @PyErr_NoMemory()")
    with pytest.raises(MemoryError):
        native(text, vectors(2))(X, Y)


# out = arguments through the arena: result[i] = arena[i] after writing x into the whole arena
ARENA = program(
    2,
    loop(
        4096,
        """
  %wrap = urem i64 %i, 5
  %from = getelementptr double, ptr %p0, i64 %wrap
  %x = load double, ptr %from
  %shift = add i64 %i, 8
  %to = getelementptr double, ptr %arena, i64 %shift
  store volatile double %x, ptr %to
  %again = load volatile double, ptr %to
  %out = getelementptr double, ptr %p1, i64 %wrap
  store double %again, ptr %out""",
    ),
)


def test_threads_without_gil_have_arenas_of_their_own() -> None:
    copy = native(ARENA, vectors(1, arena_bytes=8 * 4096, release_gil=True))
    wrong: list[int] = []

    def work(number: int) -> None:
        mine = np.full(5, float(number))
        wrong.extend(number for _ in range(300) if not np.array_equal(copy(mine), mine))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_arrays_in_lists_live_until_the_program_ends() -> None:
    text = program(2, "  %s = call i32 @usleep(i32 50000)\n" + loop(5, load(0) + store(1, "%x0")), "declare i32 @usleep(i32)")
    copy = native(text, replace(vectors(1, release_gil=True), arguments=(Container("list", (Leaf(0),)),)))
    items = [X + 1]
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(copy(items)))
    array, waiting = weakref.ref(items[0]), 0
    thread.start()
    while sys.getrefcount(items[0]) < 3 and waiting < 10**7:  # the list, the argument of getrefcount and the running call
        waiting += 1
    items.clear()
    assert array() is not None
    thread.join()
    np.testing.assert_array_equal(results[0], X + 1)
    assert array() is None


def test_slow_path_may_call_the_function_again(bind: Callable[..., Any]) -> None:
    functions: list[Any] = []

    def convert(*args: Any) -> Any:
        return functions[0](*(np.ascontiguousarray(arg) for arg in args))

    functions.append(bind(ARENA, vectors(1, arena_bytes=8 * 4096), slow=convert))
    np.testing.assert_array_equal(functions[0](np.arange(10.0)[::2]), np.arange(10.0)[::2])


def test_error_handler_may_call_the_function_again() -> None:
    functions: list[Any] = []

    def again(code: int, record: bytes) -> None:
        raise ProgramError(functions[0](X, Y).shape)

    functions.append(Executable(FAIL, vectors(2, arena_bytes=10**6)).bind(slow_path, again))
    with pytest.raises(ProgramError, match=r"\(5,\)"):
        functions[0](X - 1, Y)


# --- references and memory --------------------------------------------------------------------------------------------


def leak(run: Callable[[], object], watched: list[object], calls: int) -> int:
    """Bytes that stay allocated after many calls; also checks that no reference to `watched` is lost or kept."""
    for _ in range(100):
        run()
    gc.collect()
    counts = list(map(sys.getrefcount, watched))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(calls):
            run()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    drift = [abs(now - then) for now, then in zip(map(sys.getrefcount, watched), counts, strict=True)]
    assert max(drift) <= 2, drift
    return after - before


def test_no_leak_in_calls() -> None:
    add = native(sum_of(3), vectors(3))
    assert leak(lambda: add(X, Y, Z), [X, Y, Z, X.dtype, np.ndarray], 100_000) < 2000


def test_no_leak_in_trees() -> None:
    copy, arguments = native(NESTED_TEXT, NESTED), nested_arguments()
    watched = [X, Y, Z, X.dtype, np.float64, arguments[0][1], arguments[1], "größe b", *arguments[1]["größe b"]]
    assert leak(lambda: copy(*arguments), watched, 30_000) < 2000


def test_no_leak_in_errors_and_slow_paths() -> None:
    fail = native(FAIL, vectors(2, arena_bytes=10**5))
    bad = X - 1

    def run() -> None:
        with pytest.raises(ProgramError):
            fail(bad, Y)
        fail(bad)

    assert leak(run, [bad, Y, X.dtype], 3_000) < 4000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_arenas_are_not_leaked() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    touch = "  %far = getelementptr i8, ptr %arena, i64 100000\n  store i64 1, ptr %far\n"
    fail = native(FAIL.replace("  store i64 7", touch + "  store i64 7"), vectors(2, arena_bytes=10**6, release_gil=True))
    bad = X - 1

    def run(calls: int) -> None:
        for _ in range(calls):
            fail(X, Y)
            with contextlib.suppress(ProgramError):
                fail(bad, Y)

    run(1000)
    before = resident()
    run(20_000)
    assert resident() - before < 4 * 2**20


def test_no_leak_when_memory_runs_out() -> None:
    huge = tensor(F64, (2**40, 2**10))
    signature = replace(
        vectors(1),
        arguments=(Container("list", (Leaf(0),)),),
        result=Container("tuple", (Leaf(0), Leaf(1))),
        result_types=(VECTOR, huge),
        result_kinds=("array", "array"),
    )
    run = native("define i32 @bw_program(ptr %b, ptr %a) { ret i32 0 }", signature)

    def fails() -> None:
        with pytest.raises(MemoryError):
            run([X])

    leak(fails, [X, X.dtype], 500)  # references only: NumPy reports the failed allocation to tracemalloc as made
    impossible = native("define i32 @bw_program(ptr %b, ptr %a) { ret i32 0 }", vectors(1, arena_bytes=2**55))
    with pytest.raises(ProgramError) as caught:    # which says what the memory is for
        impossible(X)
    assert caught.value.args[0] == ARENA_ERROR


def test_executable_lives_as_long_as_its_functions() -> None:
    executable = Executable(ARENA, vectors(1, arena_bytes=8 * 4096))
    function, alive = executable.bind(slow_path, raise_error), weakref.ref(executable)
    del executable
    gc.collect()
    np.testing.assert_array_equal(function(X), X)
    assert alive() is not None
    del function
    gc.collect()
    assert alive() is None
