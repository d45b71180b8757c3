"""Children of a process that forks while its other threads compile: every lock must be free there, and LLVM whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bwcompiler.locks import RenewedLock, once

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

# Run in a process of its own: the parent has threads, and a child that hangs must not be one of pytest's.
SCRIPT = """
import gc, os, signal, sys, threading, time
import numpy as np, bwcompiler as bw

def compile_one(k):
    x = np.linspace(0.1, 1, 5)
    assert np.allclose(bw.grad(lambda x: np.sum(np.tanh(x * k)))(x), k / np.cosh(x * k) ** 2)

shared, counter, stop = [None], [0], False

def work(number):
    while not stop:
        counter[0] += 1
        k = counter[0] * 1e-3
        shared[0] = bw.jit(lambda x: np.sum(np.sin(x * k)) * k)       # the child calls it while its lock is held here
        shared[0](np.ones(3))
        compile_one(k)

threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
while counter[0] < 2:
    time.sleep(0.01)
failed = []
for number in range(FORKS):
    time.sleep(0.007 * (number % 5))
    child = os.fork()
    if child == 0:
        signal.alarm(60)                  # ends a child that hangs
        shared[0](np.ones(3))
        compile_one(0.5 + number)
        os._exit(0 if gc.isenabled() else 3)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        failed.append(status)
        break
stop = True
for thread in threads:
    thread.join()
compile_one(99.0)
sys.exit(f"child {number}: exit code {failed[0]}" if failed else 0)
"""


# The same while the compiler is loaded, which its first use does.
FIRST = """
import os, signal, sys, threading, time
import numpy as np, bwcompiler as bw

def compile_one(k):
    x = np.linspace(0.1, 1, 5)
    assert np.allclose(bw.grad(lambda x: np.sum(np.tanh(x * k)))(x), k / np.cosh(x * k) ** 2)

threads = [threading.Thread(target=compile_one, args=(1.0,)), threading.Thread(target=lambda: bw.nn.relu(np.ones(3)))]
for thread in threads:
    thread.start()
children = []
for number in range(5):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        compile_one(2.0)
        os._exit(0)
    children.append(child)
    time.sleep(0.04)
for thread in threads:
    thread.join()
assert "bwcompiler.api.programs.functions" in sys.modules
failed = [status for child in children if (status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))]
sys.exit(f"exit codes of children: {failed}" if failed else 0)
"""


# While a thread computes what a property of one object is, the main thread forks: the child computes it of another one.
PROPERTIES = """
import functools, importlib, os, signal, sys, threading
import networkx, numpy as np, bwcompiler as bw

bw.jit(np.sin).explain(np.ones(3))                       # loads the compiler, and makes graphs of networkx's
found = []
for cls in [np.finfo, *networkx.DiGraph.__mro__, *(cls for module in [*sys.modules.values()] if module.__name__.startswith("bwcompiler.")
                                                for cls in vars(module).values() if isinstance(cls, type))]:
    found += [one for one in vars(cls).values() if isinstance(one, functools.cached_property)]
found = {id(one): one for one in found if hasattr(one, "lock")}.values()
entered, leave = threading.Semaphore(0), threading.Event()

class Slow:
    def __init__(self, slow):
        self.slow = slow

def compute(self):
    if self.slow:
        entered.release()
        leave.wait()

threads, begun = [], [(one, one.func) for one in found]
for one, _ in begun:
    one.func = compute
    threads.append(threading.Thread(target=one.__get__, args=(Slow(True),)))
    threads[-1].start()
for _ in threads:
    entered.acquire()
child = os.fork()
if child == 0:
    signal.alarm(20)
    for one, _ in begun:
        one.__get__(Slow(False))
    os._exit(0)
leave.set()
for thread in threads:
    thread.join()
assert len(begun) > 10 or sys.version_info >= (3, 12), len(begun)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def run(script: str) -> None:
    environment = {**os.environ, "BW_CACHE": "0", "BW_PROGRESS": "0", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


def forks(count: int) -> None:
    run(SCRIPT.replace("FORKS", str(count)))


def test_fork_while_another_thread_compiles_for_the_first_time() -> None:
    run(FIRST)


def test_fork_while_other_threads_compile() -> None:
    forks(8)


@pytest.mark.slow
def test_many_forks_while_other_threads_compile() -> None:
    forks(150)


def test_what_objects_compute_once_is_computed_in_a_child() -> None:
    run(PROPERTIES)


def in_thread(action) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


def test_a_lock_of_another_thread_is_renewed() -> None:
    lock, free = RenewedLock(), []
    in_thread(lock.__enter__)             # that thread ends and holds it for ever, as after a fork
    lock.renew()
    in_thread(lambda: free.append(lock.__enter__()))
    assert free == [True]


def test_a_lock_of_this_thread_stays_held() -> None:
    lock, taken = RenewedLock(), []
    with lock:
        lock.renew()
        in_thread(lambda: taken.append(lock._lock.acquire(blocking=False)))
    assert taken == [False]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")     # what a handler raises in a destructor is printed
def test_an_interrupt_leaves_no_lock_taken() -> None:
    """Wherever it comes: before the block, in it, or behind it."""
    class Interrupt(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupt

    lock, interrupts = RenewedLock(), 0
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        while interrupts < 300:
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-4)
                for _ in range(200_000):          # not for ever: an interrupt that comes in a destructor is printed and gone
                    with lock:
                        pass
            except Interrupt:
                interrupts += 1
            assert not lock._lock._is_owned()  # type: ignore[attr-defined]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_threads_that_start_together_share_what_is_loaded_once() -> None:
    """What one of them loads must not be unloaded because another one's copy is kept."""
    made, gate = [], threading.Barrier(4)

    @once
    def slow(key: int) -> object:
        time.sleep(0.02)
        made.append(key)
        return object()

    def call(results: list[object]) -> None:
        gate.wait()
        results.append(slow(1))

    found: list[object] = []
    threads = [threading.Thread(target=call, args=(found,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1] and len({id(one) for one in found}) == 1
