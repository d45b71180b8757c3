"""The pool of large blocks: what is reused when, what is never reused, bounds, threads, forks, the end of the interpreter."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name  # type: ignore[attr-defined]

import bwcompiler as bw
from bwcompiler.runtime import memory_pool, python_abi
from bwcompiler.runtime.entry.table import LARGE_BYTES
from bwcompiler.runtime.executable import Executable
from bwcompiler.runtime.memory_pool import KEPT_BLOCKS, pool
from tests.unit.runtime.programs import program, vectors

pytestmark = pytest.mark.skipif(not python_abi.is_supported(), reason="the native entry needs CPython")
MB = 2**20


_before = bw.memory_stats().used        # what other tests hold


def used() -> int:
    return bw.memory_stats().used - _before


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    """An empty pool with its limit back afterwards."""
    global _before
    gc.collect()
    _before = bw.memory_stats().used
    limit = bw.memory_stats().limit
    bw.release_memory()
    yield
    pool().set_limit(limit)
    bw.release_memory()


@pytest.fixture(scope="module")
def plus() -> Callable[..., Any]:
    """x + 1, of whatever is given."""
    return bw.jit(lambda x: x + 1)


def block(bytes_: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(pool().addresses["bw_memory_take"])(bytes_) or 0)


def give(address: int) -> None:
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(pool().addresses["bw_memory_give"])(address)


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


# --- results ----------------------------------------------------------------------------------------------------------


def test_a_large_result_is_an_ordinary_array(plus: Callable[..., Any]) -> None:
    y = plus(np.zeros((64, 1024)))
    assert type(y) is np.ndarray and y.base is None and y.flags.owndata and y.flags.writeable and y.flags.c_contiguous
    assert get_handler_name(y) == "bwcompiler" and address(y) % 64 == 0
    y[3] = 7.0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(y)), y)
    assert get_handler_name(y.copy()) == get_handler_name(np.empty(100_000)) == "default_allocator"


def test_only_large_results_come_from_the_pool(plus: Callable[..., Any]) -> None:
    least = LARGE_BYTES // 8
    assert get_handler_name(plus(np.zeros(least - 1))) == "default_allocator"
    assert get_handler_name(plus(np.zeros(least))) == "bwcompiler"
    y, z = bw.jit(lambda x: (x + 1, x[:3] * 2))(np.zeros(least))
    assert get_handler_name(y) == "bwcompiler" and get_handler_name(z) == "default_allocator"


def test_memory_of_a_dead_result_is_the_next_ones(plus: Callable[..., Any]) -> None:
    x = np.zeros(MB)
    first = address(plus(x))
    before = bw.memory_stats()
    y = plus(x)
    after = bw.memory_stats()
    assert address(y) == first and after.hits == before.hits + 1 and after.misses == before.misses
    assert after.used - before.used == before.cached - after.cached >= y.nbytes


@pytest.mark.parametrize("reference", [
    lambda y: y[5:], lambda y: y.T, lambda y: y.reshape(2, -1)[:, ::3], memoryview, lambda y: np.asarray(memoryview(y)), lambda y: y.flat,
    lambda y: np.frombuffer(y, np.uint8), lambda y: y.view(np.recarray), lambda y: np.lib.stride_tricks.as_strided(y, (3,), (8,)),
    lambda y: [y], lambda y: np.broadcast_to(y, (2, y.size)), lambda y: y.view(np.complex128).imag, lambda y: np.ma.array(y)],
    ids=range(13))
def test_memory_with_a_reference_is_never_reused(plus: Callable[..., Any], reference: Callable[[Any], Any]) -> None:
    y = plus(np.zeros(MB))
    taken, kept = address(y), reference(y)
    del y
    others = [plus(np.ones(MB)) for _ in range(3)]
    assert taken not in map(address, others)
    assert np.asarray(kept).reshape(-1)[-1] in (0.0, 1.0, 63)          # the last byte of 1.0 is 63
    del kept
    gc.collect()
    assert address(plus(np.ones(MB))) == taken


def test_random_lives(plus: Callable[..., Any], rng: np.random.Generator) -> None:
    """Results of many sizes that die in any order: those that are alive keep their values and share no byte."""
    alive: list[tuple[float, np.ndarray[Any, Any]]] = []
    inputs = [np.zeros(int(size)) for size in rng.integers(LARGE_BYTES // 8, 6 * LARGE_BYTES // 8, 6)]
    for step in range(300):
        value = float(step)
        x = inputs[rng.integers(len(inputs))]
        x[...] = value
        alive.append((value + 1, plus(x)))
        while alive and rng.random() < 0.55:
            alive.pop(rng.integers(len(alive)))
        assert all((array == number).all() for number, array in alive)
        spans = sorted((address(array), address(array) + array.nbytes) for _, array in alive)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    stats = bw.memory_stats()
    assert stats.hits > stats.misses and stats.used >= sum(array.nbytes for _, array in alive)


def test_resize_of_a_result(plus: Callable[..., Any]) -> None:
    for size in (3, 1000, MB - 1, MB + 1, 3 * MB):
        y = plus(np.arange(float(MB)))
        y.resize(size, refcheck=False)
        expected = np.arange(1.0, MB + 1)
        expected.resize(size, refcheck=False)
        np.testing.assert_array_equal(y, expected)
        y[...] = 1.0
    del y
    assert used() == 0


def test_a_users_own_handler_is_left_alone(plus: Callable[..., Any]) -> None:
    """Who sets a memory policy of NumPy's gets arrays of that policy."""
    theirs = memory_pool._Handler.from_buffer_copy(pool()._handler)
    theirs.name = b"theirs"
    capsule = python_abi.new_capsule(ctypes.addressof(theirs), b"mem_handler")
    python_abi.make_immortal(theirs, capsule)
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(python_abi.symbols()["np.PyDataMem_SetHandler"])
    x = np.zeros(MB)
    plus(x)
    before = set_handler(capsule)
    try:
        y = plus(x)
        assert get_handler_name(y) == "theirs" and get_handler_name() == "theirs"
    finally:
        set_handler(before)
    assert get_handler_name(plus(x)) == "bwcompiler" and get_handler_name() == "default_allocator"


def test_tracemalloc_sees_results(plus: Callable[..., Any]) -> None:
    x = np.zeros(MB)
    plus(x)
    tracemalloc.start()
    try:
        y = plus(x)
        assert tracemalloc.get_traced_memory()[0] >= y.nbytes
        del y
        assert tracemalloc.get_traced_memory()[0] < x.nbytes
    finally:
        tracemalloc.stop()


# --- arenas -----------------------------------------------------------------------------------------------------------

TOUCH = program(2, """  %far = getelementptr i8, ptr %arena, i64 1000000
  store i64 1, ptr %far
  %arena.word = ptrtoint ptr %arena to i64
  store i64 %arena.word, ptr %p1
  ret i32 0""")
FAIL = program(2, "  ret i32 7")


def test_arenas_are_shared_by_programs() -> None:
    def fail(*args: object) -> None:
        raise ArithmeticError

    runs = [Executable(TOUCH, vectors(1, arena_bytes=size)).bind(fail, fail) for size in (10**6, 10**6, 10**6 + 5000)]
    x = np.zeros(5)
    runs[2](x)
    found = {int(run(x).view(np.int64)[0]) for run in runs}
    assert len(found) == 1 and used() == 0 and 10**6 <= bw.memory_stats().cached < 1.3 * 10**6
    with pytest.raises(ArithmeticError):
        Executable(FAIL, vectors(1, arena_bytes=10**6)).bind(fail, fail)(x)
    assert used() == 0


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_the_least_recently_used_goes_first() -> None:
    pool().set_limit(10 * MB)
    blocks = [block(size * MB) for size in (2, 3, 4)]
    for taken in blocks:
        give(taken)
    again = block(2 * MB)                     # the first block becomes the last one used
    assert again == blocks[0]
    give(again)
    five = block(5 * MB)
    give(five)                                # 2 + 3 + 4 + 5: 3 and 4 go, as they were used before 2
    assert bw.memory_stats().cached <= 10 * MB
    found = [block(size * MB) for size in (2, 5)]
    assert found == [again, five] and bw.memory_stats().cached == 0
    for taken in found:
        give(taken)


def test_what_is_larger_than_the_limit_is_not_kept(plus: Callable[..., Any]) -> None:
    pool().set_limit(MB)
    y, x = plus(np.zeros(3)), np.zeros(MB)
    for _ in range(3):
        y = plus(x)
    del y
    assert bw.memory_stats().cached == 0 == used()
    pool().set_limit(0)
    del x
    plus(np.zeros(LARGE_BYTES))
    assert bw.memory_stats().cached == 0


def test_the_number_of_kept_blocks_is_bounded() -> None:
    blocks = [block(5000) for _ in range(KEPT_BLOCKS + 20)]
    assert len(set(blocks)) == len(blocks) and used() == 8192 * len(blocks)
    for taken in blocks:
        give(taken)
    assert bw.memory_stats().cached == 8192 * KEPT_BLOCKS and used() == 0
    assert bw.release_memory() == 8192 * KEPT_BLOCKS and bw.memory_stats().cached == 0


def test_a_block_is_at_most_a_quarter_too_long() -> None:
    long = block(10 * MB)
    give(long)
    short = block(6 * MB)
    assert short != long and block(9 * MB) == long
    give(short)
    give(long)
    give(exact := block(8 * MB))
    assert block(8 * MB) == exact             # of several that fit, the shortest
    give(exact)


def test_blocks_that_lay_idle_go() -> None:
    give(block(3 * MB))
    trim = pool().trim
    assert trim(2**62, 1) == 0               # nothing from before the time 1
    assert trim(2**62, 2**62) == 3 * MB + MB  # whole huge pages: 4 MB


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_released_memory_is_unmapped() -> None:
    def mapped(at: int) -> bool:
        with open("/proc/self/maps", encoding="ascii") as file:
            spans = [[int(word, 16) for word in line.split()[0].split("-")] for line in file]
        return any(start <= at < end for start, end in spans)

    taken = block(4 * MB)
    assert taken % (2 * MB) == 0 and mapped(taken)
    ctypes.memset(taken, 1, 4 * MB)
    give(taken)
    assert mapped(taken) and bw.release_memory() == 4 * MB and not mapped(taken) and not mapped(taken - 1)


@pytest.mark.parametrize("bytes_", [2**55, 2**62, 2**63 - 1])
def test_impossible_sizes(bytes_: int) -> None:
    assert block(bytes_) == 0
    assert used() == 0


def fresh(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", "import numpy as np, bwcompiler as bw\nf = bw.jit(lambda x: x + 1)\n" + script],
                          env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce RLIMIT_AS")
def test_kept_memory_is_released_before_memory_is_out() -> None:
    found = fresh("""
import resource
x, y = np.zeros(20 * 2**20, np.int8), np.zeros(40 * 2**20, np.int8)
f(x[:2**20]), f(y[:2**20])
for _ in range(2):
    kept = [f(x) for _ in range(8)]
    del kept
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 20 * 2**20, size + 20 * 2**20))
before = bw.memory_stats().cached
z = f(y)
print(before >= 8 * x.nbytes, bw.memory_stats().cached)
try:
    more = [f(y) for _ in range(20)]
except MemoryError:
    print("MemoryError", z.min() == z.max() == 1)              # which take no memory: there is none
""", BW_MEMORY_BYTES=str(2**30))
    assert found.stdout.split() == ["True", "0", "MemoryError", "True"], found.stderr


def test_environment_variable() -> None:
    script = "y = f(np.zeros(10**6)); del y; print(bw.memory_stats().cached, bw.memory_stats().limit)"
    assert fresh(script, BW_MEMORY_BYTES="0").stdout.split() == ["0", "0"]
    cached, limit = map(int, fresh(script, BW_MEMORY_BYTES="10000000").stdout.split())
    assert cached >= 8 * 10**6 and limit == 10**7
    found = fresh(script, BW_MEMORY_BYTES="1 GB")
    assert found.returncode != 0 and "BW_MEMORY_BYTES='1 GB': expected a number of bytes" in found.stderr


# --- threads, forks, the end ------------------------------------------------------------------------------------------


def test_threads_share_the_pool() -> None:
    """Without the lock of the interpreter: blocks are never given to two, and none is lost."""
    take, free = pool().addresses["bw_memory_take"], pool().addresses["bw_memory_give"]
    take_it, give_it = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(take), ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free)
    wrong: list[int] = []

    def work(seed: int) -> None:
        own = np.random.default_rng(seed)
        held: list[int] = []
        for _ in range(400):
            at = take_it(int(own.integers(1, 60_000)))
            ctypes.c_int64.from_address(at).value = seed
            held.append(at)
            while held and own.random() < 0.6:
                at = held.pop(own.integers(len(held)))
                if ctypes.c_int64.from_address(at).value != seed:
                    wrong.append(at)
                give_it(at)
        for at in held:
            give_it(at)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and used() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_starts_with_an_empty_pool(plus: Callable[..., Any]) -> None:
    x = np.zeros(MB)
    held = plus(x)
    plus(x)
    child = os.fork()
    if child == 0:
        try:
            empty_pool = bw.memory_stats().cached == 0 and bw.memory_stats().used >= held.nbytes
            y = plus(x + 1)
            held += 5
            right = (y == 2).all() and (held == 6).all()
            del y, held
            again = plus(x)
            os._exit(0 if empty_pool and right and (again == 1).all() else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert bw.memory_stats().cached >= x.nbytes and (held == 1).all() and (plus(x) == 1).all()


def test_arrays_that_outlive_the_interpreter() -> None:
    """Everything of bwcompiler may be gone when the last results die."""
    found = fresh("""
import atexit, builtins, sys, threading, time
class Late:
    def __del__(self): self.y = None
builtins.late = Late(); builtins.late.y = f(np.zeros(10**6))
sys.late = f(np.ones(10**6))
keep = [f(np.ones(10**6)) for _ in range(3)]
atexit.register(keep.clear)
def run():
    x = np.ones(10**6)
    while True: f(x)
threading.Thread(target=run, daemon=True).start()
time.sleep(0.05)
print("end")
""")
    assert (found.returncode, found.stdout.split(), found.stderr) == (0, ["end"], "")
