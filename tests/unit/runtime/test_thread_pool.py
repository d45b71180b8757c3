"""The pool by itself: parts, sums, nesting, threads of Python, forks, statuses, changes of the number of threads, crowded machines."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bwcompiler.runtime import jit, object_cache, threads
from bwcompiler.runtime.pool.thread_pool import PARTS_PER_THREAD, ThreadPool
from bwcompiler.runtime.pool.thread_state import MOST_THREADS, STATE, has_threads
from bwcompiler.target import default_target

# What regions run: add 1 to words; keep who ran which part; fail; nest; take their time.
_HEAD = "{{\nstart:\n  br label %head\nhead:\n  %i = phi i64 [ %begin, %start ], [ %next, %head ]\n"
_FOOT = "  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, %end\n  br i1 %more, label %head, label %done\ndone:\n  ret i32 0\n}}\n"
TEXT = f"""
declare i32 @bw_parallel(ptr, ptr, i64, i64)
declare i64 @pthread_self()
declare i32 @sched_getcpu()
declare i32 @usleep(i32)
define i32 @add_one(ptr %words, i64 %begin, i64 %end) nounwind {_HEAD}
  %at = getelementptr i64, ptr %words, i64 %i
  %word = load i64, ptr %at
  %sum = add i64 %word, 1
  store i64 %sum, ptr %at
{_FOOT}
define i32 @trace(ptr %records, i64 %begin, i64 %end) nounwind {{
  %number = atomicrmw add ptr %records, i64 1 seq_cst
  %k = add i64 %number, 1
  %record = getelementptr [4 x i64], ptr %records, i64 %k
  store i64 %begin, ptr %record
  %second = getelementptr i64, ptr %record, i64 1
  store i64 %end, ptr %second
  %thread = call i64 @pthread_self()
  %third = getelementptr i64, ptr %record, i64 2
  store i64 %thread, ptr %third
  %cpu = call i32 @sched_getcpu()
  %wide = sext i32 %cpu to i64
  %fourth = getelementptr i64, ptr %record, i64 3
  store i64 %wide, ptr %fourth
  %slept = call i32 @usleep(i32 300)
  ret i32 0
}}
define i32 @fail_from(ptr %first, i64 %begin, i64 %end) nounwind {{
  %from = load i64, ptr %first
  %reached = icmp ugt i64 %end, %from
  %code = trunc i64 %begin to i32
  %odd = or i32 %code, 1
  %status = select i1 %reached, i32 %odd, i32 0
  %slept = call i32 @usleep(i32 50)
  ret i32 %status
}}
define i32 @slow_elsewhere(ptr %caller, i64 %begin, i64 %end) nounwind {{
start:
  %own = load i64, ptr %caller
  %thread = call i64 @pthread_self()
  %same = icmp eq i64 %own, %thread
  br i1 %same, label %quick, label %slow
quick:
  %little = call i32 @usleep(i32 20)
  ret i32 0
slow:
  %long = call i32 @usleep(i32 3000)
  ret i32 0
}}
define i32 @row(ptr %row, i64 %begin, i64 %end) nounwind {{
  %status = call i32 @add_one(ptr %row, i64 %begin, i64 %end)
  ret i32 %status
}}
define i32 @nested(ptr %words, i64 %begin, i64 %end) nounwind {_HEAD}
  %at = getelementptr [64 x i64], ptr %words, i64 %i
  %status = call i32 @bw_parallel(ptr @row, ptr %at, i64 64, i64 8)
{_FOOT}
define i32 @repeat(ptr %fn, ptr %context, i64 %count, i64 %grain, i64 %times) nounwind {{
start:
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k.next, %head ]
  %all = phi i32 [ 0, %start ], [ %all.next, %head ]
  %status = call i32 @bw_parallel(ptr %fn, ptr %context, i64 %count, i64 %grain)
  %all.next = or i32 %all, %status
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %times
  br i1 %more, label %head, label %done
done:
  ret i32 %all.next
}}
""".replace("{{", "{").replace("}}", "}")
_NAMES = ("add_one", "trace", "fail_from", "slow_elsewhere", "nested", "repeat")


class Regions:
    """Regions of the functions above, in the pool of the process."""

    def __init__(self) -> None:
        self.pool: ThreadPool = threads.pool()
        self.code = jit.load(object_cache.object_for(TEXT, default_target()), {"bw_parallel": self.pool.address}, _NAMES)
        word, pointer = ctypes.c_int64, ctypes.c_void_p
        self._repeat = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, word, word, word)(self.code.addresses["repeat"])

    def run(self, name: str, context: np.ndarray[Any, Any], count: int, grain: int, times: int = 1) -> int:
        return int(self._repeat(self.code.addresses[name], context.ctypes.data, count, grain, times))

    def parts(self, count: int, grain: int) -> list[tuple[int, int, int, int]]:
        """(begin, end, thread, cpu) of all parts, by begin."""
        records = np.zeros((2000, 4), np.int64)
        assert self.run("trace", records, count, grain) == 0
        return sorted(map(tuple, records[1:records[0, 0] + 1].tolist()))


@pytest.fixture(scope="module")
def regions() -> Regions:
    return Regions()


@pytest.fixture(autouse=True)
def awake(regions: Regions) -> Iterator[None]:
    before = regions.pool.word("threads")
    regions.pool.wake_up()
    yield
    regions.pool.set_threads(before)
    regions.pool.wake_up()


needs_two = pytest.mark.skipif(not has_threads() or len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")


@pytest.mark.parametrize("count_of_threads", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 64, 1000, 100_003])
@pytest.mark.parametrize("grain", [0, 1, 5, 1000, 10**6])
def test_every_item_once(regions: Regions, count_of_threads: int, count: int, grain: int) -> None:
    regions.pool.set_threads(count_of_threads)
    words = np.zeros(count + 1, np.int64)
    assert regions.run("add_one", words, count, grain, 5) == 0
    assert (words[:-1] == 5).all() and words[-1] == 0


def test_negative_counts_are_nothing(regions: Regions) -> None:
    regions.pool.set_threads(2)
    assert regions.run("add_one", np.zeros(1, np.int64), -5, 1) == 0


@pytest.mark.parametrize("count_of_threads", [1, 2, 5])
@pytest.mark.parametrize(("count", "grain"), [(100, 1), (101, 3), (7, 2), (1000, 250), (1001, 250), (33, 32), (32, 32)])
def test_parts_depend_on_numbers_alone(regions: Regions, count_of_threads: int, count: int, grain: int) -> None:
    """The same whoever runs them: threads, a resting pool, a region inside of another."""
    regions.pool.set_threads(count_of_threads)
    expected = [part[:2] for part in regions.parts(count, grain)]
    assert expected[0][0] == 0 and expected[-1][1] == count and len(expected) <= PARTS_PER_THREAD * count_of_threads
    assert all(begin % grain == 0 for begin, _ in expected) and (count > grain or len(expected) == 1)
    assert all(first[1] == second[0] for first, second in itertools.pairwise(expected))
    regions.pool.rest_until(2**62)
    resting = regions.parts(count, grain)
    assert [part[:2] for part in resting] == expected and len({part[2] for part in resting}) == 1
    regions.pool.wake_up()
    regions.pool._state[STATE["busy"]] = 1
    assert [part[:2] for part in regions.parts(count, grain)] == expected
    regions.pool._state[STATE["busy"]] = 0


@needs_two
def test_threads_take_part_and_keep_off_the_callers_cpu(regions: Regions) -> None:
    regions.pool.set_threads(2)
    for _ in range(50):
        regions.pool.wake_up()
        parts = regions.parts(80, 1)
        own = {part[3] for part in parts if part[2] == threading.get_ident()}
        others = {part[3] for part in parts if part[2] != threading.get_ident()}
        if others and len(own) == 1:
            assert not own & others
            return
    pytest.fail("no other thread ran a part in 50 regions")


def test_the_caller_keeps_its_cpus_and_signals(regions: Regions) -> None:
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    regions.pool.set_threads(4)
    regions.parts(100, 1)
    assert cpus is None or os.sched_getaffinity(0) == cpus
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask


@pytest.mark.parametrize("count_of_threads", [1, 2, 6])
@pytest.mark.parametrize("first", [0, 17, 499, 999, 1000])
def test_status_of_the_first_part_that_fails(regions: Regions, count_of_threads: int, first: int) -> None:
    """`fail_from` returns begin | 1 where a part reaches `first`: of those that do, the first one counts, as without threads."""
    regions.pool.set_threads(count_of_threads)
    begins = [part[:2] for part in regions.parts(1000, 10)]
    expected = next((begin | 1 for begin, end in begins if end > first), 0)
    for _ in range(10):
        regions.pool.wake_up()
        assert regions.run("fail_from", np.array([first]), 1000, 10) == expected
    words = np.zeros(1000, np.int64)
    assert regions.run("add_one", words, 1000, 10) == 0 and (words == 1).all()


@pytest.mark.parametrize("count_of_threads", [1, 2, 4])
def test_regions_inside_of_regions(regions: Regions, count_of_threads: int) -> None:
    regions.pool.set_threads(count_of_threads)
    words = np.zeros((100, 64), np.int64)
    for times in (1, 20):
        words[...] = 0
        assert regions.run("nested", words, 100, 1, times) == 0
        assert (words == times).all()


def test_python_threads_at_once(regions: Regions) -> None:
    regions.pool.set_threads(3)
    arrays = [np.zeros(5000, np.int64) for _ in range(4)]
    callers = [threading.Thread(target=regions.run, args=("add_one", array, array.size, 16, 500)) for array in arrays]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all((array == 500).all() for array in arrays)


def test_changes_of_the_number(regions: Regions, rng: np.random.Generator) -> None:
    words, other = np.zeros(3000, np.int64), np.zeros(3000, np.int64)
    changer = threading.Thread(target=regions.run, args=("add_one", other, other.size, 8, 2000))
    changer.start()
    for times, number in enumerate(rng.integers(1, 9, 60), 1):
        regions.pool.set_threads(int(number))
        assert regions.run("add_one", words, words.size, 8) == 0
        assert (words == times).all()
    changer.join()
    assert (other == 2000).all()


def test_more_threads_than_the_pool_has(regions: Regions) -> None:
    regions.pool.set_threads(10**6)
    assert regions.pool.word("threads") == MOST_THREADS
    regions.pool.set_threads(1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_children_have_threads_of_their_own(regions: Regions) -> None:
    """While another thread of Python is in a region, too."""
    regions.pool.set_threads(3)
    words, other = np.zeros(5000, np.int64), np.zeros(5000, np.int64)
    regions.run("add_one", words, words.size, 8)
    busy = threading.Thread(target=regions.run, args=("add_one", other, other.size, 8, 3000))
    busy.start()
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                clean = regions.pool.word("started") == 0 == regions.pool.word("busy") and regions.pool.word("threads") == 3
                regions.run("add_one", words, words.size, 8, 20)
                started = not has_threads() or len(os.sched_getaffinity(0)) < 2 or regions.pool.word("started") == 2
                os._exit(0 if clean and started and (words == 21).all() else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    busy.join()
    assert (other == 3000).all() and regions.run("add_one", words, words.size, 8) == 0 and (words == 2).all()


@needs_two
def test_one_cpu_is_one_thread(regions: Regions) -> None:
    """No region in several threads where the caller may use one CPU: set before or after the pool was used."""
    allowed = os.sched_getaffinity(0)
    regions.pool.set_threads(4)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        regions.pool._state[STATE["place_at"]] = 0
        parts = regions.parts(100, 1)
        assert {part[2] for part in parts} == {threading.get_ident()}
    finally:
        os.sched_setaffinity(0, allowed)
        regions.pool._state[STATE["place_at"]] = 0


@needs_two
def test_the_pool_rests_where_threads_lose(regions: Regions) -> None:
    """A thread that gets a CPU now and then only, and is waited for: few regions are tried before the caller does it alone."""
    regions.pool.set_threads(2)
    before = regions.pool.word("regions"), regions.pool.word("rested")
    for _ in range(20):
        regions.run("slow_elsewhere", np.array([threading.get_ident()]), 100, 1, 5)
    tried, rested = (regions.pool.word(name) - count for name, count in zip(("regions", "rested"), before, strict=True))
    assert tried + rested == 100 and rested > 50 and regions.pool.word("rest") >= 1_000_000


def test_programs_end_while_threads_wait() -> None:
    script = """
import threading, numpy as np
from tests.unit.runtime.test_thread_pool import Regions
regions = Regions()
regions.pool.set_threads(3)
words = np.zeros(10**5, np.int64)
def run():
    while True: regions.run("add_one", words, words.size, 100)
threading.Thread(target=run, daemon=True).start()
regions.run("add_one", np.zeros(1000, np.int64), 1000, 10, 100)
print("end")
"""
    found = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stdout.strip(), found.stderr) == (0, "end", "")


def test_callers_that_sleep_are_woken() -> None:
    """A caller that does not spin: in some of so many regions the last thread leaves just as the caller goes to sleep."""
    script = """
import numpy as np
from bwcompiler.runtime.pool import thread_pool
spins = f"ugt i64 %turn, {thread_pool.SPIN_TURNS}"
assert spins in thread_pool._REGION
thread_pool._REGION = thread_pool._REGION.replace(spins, "ugt i64 %turn, 0")
from tests.unit.runtime.test_thread_pool import Regions
regions = Regions()
regions.pool.set_threads(2)
words = np.zeros(4096, np.int64)
for _ in range(400):
    regions.pool.wake_up()
    regions.run("add_one", words, words.size, 512, 1000)
print(words[0])
"""
    found = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stdout.strip(), found.stderr) == (0, "400000", "")
