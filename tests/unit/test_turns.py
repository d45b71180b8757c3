"""How long threads wait for the interpreter while programs are compiled."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.turns import SHORT, short_turns


@pytest.fixture(autouse=True)
def interval() -> Iterator[float]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.004)
    yield 0.004
    sys.setswitchinterval(before)


def test_turns_are_short_while_a_program_is_compiled(interval: float) -> None:
    """And as they were before afterwards, also where there is none for an error."""
    seen: list[float] = []

    def function(x: np.ndarray) -> np.ndarray:
        seen.append(sys.getswitchinterval())
        if x.shape != (3,):
            raise ValueError("three")
        return x * 2.0

    bw.jit(function)(np.ones(3))
    with pytest.raises(ValueError, match="three"):
        bw.jit(function)(np.ones(2))
    assert seen == [pytest.approx(SHORT)] * len(seen) and sys.getswitchinterval() == pytest.approx(interval)


def test_the_last_one_ends_it(interval: float) -> None:
    with short_turns():
        with short_turns():
            pass
        assert sys.getswitchinterval() == pytest.approx(SHORT)
    assert sys.getswitchinterval() == pytest.approx(interval)


def test_what_others_set_stays() -> None:
    with short_turns():
        sys.setswitchinterval(0.002)
    assert sys.getswitchinterval() == pytest.approx(0.002)


def test_shorter_ones_stay() -> None:
    sys.setswitchinterval(1e-5)
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(1e-5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("is_own", [False, True])
def test_a_forked_child_waits_for_no_thread_of_its_parent(is_own: bool, interval: float) -> None:
    """What another thread would set back is so at once; what the thread that forks does, when it ends."""
    begun, ended = threading.Event(), threading.Event()

    def compile_() -> None:
        with short_turns():
            begun.set()
            ended.wait(60)

    thread = threading.Thread(target=compile_)
    thread.start()
    begun.wait(60)
    with short_turns() if is_own else contextlib.nullcontext():
        child = os.fork()
        inside = sys.getswitchinterval()
    if child == 0:
        right = inside == pytest.approx(SHORT if is_own else interval) and sys.getswitchinterval() == pytest.approx(interval)
        os._exit(0 if right else 3)
    ended.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and sys.getswitchinterval() == pytest.approx(interval)
