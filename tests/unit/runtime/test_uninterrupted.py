"""Work that is done to its end whatever signals come, and LLVM, which is such work."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from bwcompiler.runtime import jit
from bwcompiler.uninterrupted import _Work, uninterrupted
from tests.support.targets import HOST

needs_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")


class Interrupt(Exception):
    pass


@pytest.fixture
def interrupt_after():
    """interrupt_after(seconds): Interrupt is raised in the main thread then; 0 for never."""
    def interrupt(*_: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_results_and_errors_come_out() -> None:
    @uninterrupted
    def divide(x: float, *, by: float) -> float:
        """Divide."""
        return x / by

    assert divide(1.0, by=2.0) == 0.5 and divide.__doc__ == "Divide."
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        divide(1.0, by=0.0)


def test_other_threads_do_the_work_themselves() -> None:
    where = uninterrupted(threading.get_ident)
    found: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: found.append((where(), threading.get_ident())))
    thread.start()
    thread.join()
    assert found[0][0] == found[0][1]
    assert where() != threading.get_ident()


def test_a_thread_on_its_last_step_does_not_keep_the_result() -> None:
    """It has given the result and not ended yet: on a machine with much to do, long after the one that waited went on."""
    class Result:
        pass

    work = _Work(Result)
    work.run()
    result = work.outcome()
    seen = weakref.ref(result)
    del result
    assert seen() is None


@needs_timers
def test_interrupted_work_goes_on_to_its_end(interrupt_after) -> None:
    done = threading.Event()

    @uninterrupted
    def work() -> None:
        for _ in range(20):
            time.sleep(0.005)
        done.set()

    with pytest.raises(Interrupt):
        interrupt_after(0.02)
        work()
    assert not done.is_set()
    assert done.wait(30)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")     # what a handler raises in a destructor is printed
@needs_timers
def test_llvm_is_whole_after_interrupts(interrupt_after) -> None:
    """At any moment of it: no lock of llvmlite's stays taken, and what is compiled next is right."""
    def make(number: int) -> jit.LoadedCode:
        text = f"define i64 @f{number}(i64 %x) {{\n  %r = add i64 %x, {number}\n  ret i64 %r\n}}\n"
        return jit.load(jit.optimise(text, HOST), {}, [f"f{number}"])

    make(0)
    start = time.perf_counter()
    make(1)
    whole, delays, interrupted = time.perf_counter() - start, random.Random(1), 0
    for number in range(2, 200):
        try:
            interrupt_after(max(1e-6, delays.uniform(0, whole)))
            make(number)
            interrupt_after(0)                     # it comes here at the latest
        except Interrupt:
            interrupted += 1
        assert not llvm.ffi.lib._lock._lock._is_owned()
    assert interrupted > 20
    assert "f7" in make(7).addresses


def test_code_may_die_while_another_thread_loads() -> None:
    """The collector drops it in any thread, also in one that has what the other one waits for."""
    code = jit.load(jit.optimise("define void @f() {\n  ret void\n}\n", HOST), {}, ["f"])
    held, leave = threading.Event(), threading.Event()

    def load() -> None:
        with jit._lock:
            held.set()
            leave.wait(30)

    thread = threading.Thread(target=load)
    thread.start()
    held.wait(30)
    start = time.perf_counter()
    del code
    assert time.perf_counter() - start < 10 and thread.is_alive()
    leave.set()
    thread.join()
    assert jit._dropped
    kept = jit.load(jit.optimise("define void @g() {\n  ret void\n}\n", HOST), {}, ["g"])
    assert not jit._dropped and kept.addresses


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_does_not_wait_for_work_of_its_parent_at_its_end() -> None:
    script = """
import os, signal, threading, time
from bwcompiler.uninterrupted import uninterrupted
leave = threading.Event()
threading.Thread(target=lambda: (time.sleep(0.3), leave.set())).start()
signal.signal(signal.SIGALRM, lambda *_: 1 / 0)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    uninterrupted(leave.wait)()
except ZeroDivisionError:
    child = os.fork()
    if child:
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(20)                       # ends a child that hangs
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])})
    assert done.returncode == 0, done.stderr
