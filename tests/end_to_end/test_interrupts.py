"""Signals during long native calls: handlers run within a fraction of a second, what they raise comes out, nothing is lost."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs import executables
from bwcompiler.ir.contracts.program_interface import POLL

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")

ROWS = np.linspace(-1, 1, 1 << 15)


def steps(x):
    """Many steps, most of them of one kernel: a program that walks a table."""
    for _ in range(1600):
        x = np.cumsum(np.sin(x) + np.roll(x, 1))[::-1] * 1e-5
    return x


def one_loop(x):
    """One kernel: no array between its steps, nothing to look between."""
    for _ in range(8):
        x = np.sin(x) + 0.5 * np.tanh(x)
    return x


def product(x):
    """One call, which is cut among threads."""
    return x @ x


def nested(x):
    """A reduction in an outer loop, its rows short."""
    return np.sum(np.sin(x[:, None] * ROWS[None, :256]) ** 2, axis=1)


def blocks(x):
    """A sum in few blocks, each of them long."""
    return np.sum(one_loop(x))


CASES = {"blocks": (blocks, np.linspace(-1, 1, 1 << 23)), "steps": (steps, ROWS), "one loop": (one_loop, np.linspace(-1, 1, 1 << 22)), "nested": (nested, np.linspace(-1, 1, 1 << 18)),
         "product": (product, np.linspace(-1, 1, 1 << 22).reshape(1 << 11, 1 << 11))}


class Rang(Exception):
    pass


@pytest.fixture
def alarm() -> Iterator[Callable[[float], list[float]]]:
    """alarm(seconds) -> the list that gets the time at which SIGALRM's handler ran; the handler raises Rang."""
    rang: list[float] = []

    def handler(number: int, frame: object) -> None:
        rang.append(time.perf_counter())
        raise Rang

    before = signal.signal(signal.SIGALRM, handler)

    def start(delay: float) -> list[float]:
        rang.clear()
        signal.setitimer(signal.ITIMER_REAL, delay)
        return rang

    yield start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def specialised(function, x):
    return function.specialised(function._arguments((x,), {}))


def compiled(fun, x, native: bool = True):
    """The compiled function, called natively or through ctypes, and its value."""
    function = bw.jit(fun)
    expected = function(x)
    bound = specialised(function, x).bound
    assert bound.compiled.lowered.program.symbols & {POLL, "bw_product_f64.2048x2048.turned.large.huge.many"}
    return function if native else lambda x: bound.run([x])[0], expected


@pytest.mark.parametrize(("case", "lock", "native"), [
    ("steps", False, True), ("one loop", False, True), ("nested", False, True), ("nested", True, True), ("nested", False, False),
    ("nested", True, False), ("product", False, True), ("blocks", False, True)])
def test_a_long_call_is_interrupted(case, lock, native, alarm, monkeypatch: pytest.MonkeyPatch) -> None:
    """lock: whether the program keeps the interpreter's lock; native: whether it is called by the native entry."""
    monkeypatch.setattr(executables, "_releases_lock", lambda graph, program: not lock)
    fun, x = CASES[case]
    call, expected = compiled(fun, x, native)
    start = time.perf_counter()
    call(x)
    whole = time.perf_counter() - start
    start = time.perf_counter()
    with pytest.raises(Rang):
        rang = alarm(0.2 * whole)
        call(x)
    assert len(rang) == 1 and rang[0] - start < 0.8 * whole
    assert np.array_equal(call(x), expected)


def test_ctrl_c_leaves_nothing_behind(alarm) -> None:
    """Forty interrupted calls: the results that were begun are dropped, the arena is used again."""
    fun, x = CASES["one loop"]
    call, expected = compiled(fun, x)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for number in range(40):
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.002)
                for _ in range(1000):
                    call(x)
            if number == 9:
                settled = resident_bytes()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert resident_bytes() < settled + 2 * x.nbytes
    assert np.array_equal(call(x), expected)


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_handler_that_does_not_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs during the call, may call compiled functions itself, and the call goes on."""
    fun, x = CASES["nested"]
    call, expected = compiled(fun, x)
    other, seen = bw.jit(lambda x: x + 1), []
    other(ROWS)
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(other(ROWS)[0]))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        result = call(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert np.array_equal(result, expected) and seen == [0.0]


def test_a_call_in_another_thread_goes_on() -> None:
    """Handlers are the main thread's business, and run there meanwhile."""
    fun, x = CASES["nested"]
    call, expected = compiled(fun, x)
    results: list[np.ndarray] = []
    finished = threading.Event()
    seen: list[bool] = []

    def work() -> None:
        results.append(call(x))
        finished.set()

    def handler(number: int, frame: object) -> None:
        seen.append(threading.current_thread() is threading.main_thread())

    before = signal.signal(signal.SIGALRM, handler)
    try:
        threading.Thread(target=work).start()
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        end = time.monotonic() + 60
        while (not finished.is_set() or not seen) and time.monotonic() < end:      # not one long wait: the system may hand the signal to the other thread
            time.sleep(0.002)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen == [True] and np.array_equal(results[0], expected)


def test_small_programs_do_not_look() -> None:
    """A call of less than a millisecond or so has nothing to look for: not an instruction more."""
    for fun, x in [(np.sin, np.ones(1000)), (steps, np.ones(8)), (lambda x: x @ x, np.ones((100, 100)))]:
        function = bw.jit(fun)
        assert POLL not in specialised(function, x).bound.compiled.lowered.program.text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")     # what a handler raises in a destructor is printed
def test_interrupts_while_compiling(alarm) -> None:
    """At any moment of tracing, passes or LLVM: the next call compiles, and what was compiled before runs."""
    def make(k):
        return bw.grad(lambda x: np.sum(np.tanh(x * k) ** 2 / (k + x @ x)))

    x, done = np.linspace(0.1, 1, 7), make(0.5)
    expected = done(x)
    times = []
    for factor in (0.7, 0.75, 0.8):
        start = time.perf_counter()
        make(factor)(x)
        times.append(time.perf_counter() - start)
    whole = min(times)                             # the first one also warms up
    interrupted = 0
    for number in range(24):
        function = make(1.0 + number / 64)
        try:
            alarm((number + 0.5) / 24 * whole)
            function(x)
            signal.setitimer(signal.ITIMER_REAL, 0)            # it comes here at the latest
        except Rang:
            interrupted += 1
        assert gc.isenabled()
        assert np.array_equal(make(1.0 + number / 64)(x), function(x))
        assert np.array_equal(done(x), expected)
    assert interrupted


def counted(x):
    for _ in range(10**7):
        x = np.sin(x) + 1e-3
    return x


def without_end(x):
    while x < 1.0:
        x = 2.0 * x
    return x


def few_iterations(x):
    for _ in range(20):
        x = np.sin(x)
    return x


@pytest.mark.parametrize(("fun", "released"), [
    (counted, True), (without_end, True), (few_iterations, False), (np.sin, False),
    (lambda x: bw.fori_loop(0, 10**7, lambda i, x: np.sin(x), x), True), (lambda x: bw.while_loop(lambda x: x < 1.0, lambda x: 2.0 * x, x), True)])
@pytest.mark.parametrize("transform", [bw.jit, bw.grad])
def test_other_threads_run_while_a_loop_of_numbers_does(fun, released: bool, transform) -> None:
    """A loop may take long however small what it computes with: then it does not keep the interpreter's lock."""
    bound = specialised(transform(fun), 0.5).bound
    assert f"GIL {'released' if released else 'held'}" in str(bound.compiled.executable.signature)
