"""Which arguments the functions that a program calls write to (`concrete/writes.py`)."""

from __future__ import annotations

import weakref

import numpy as np

from bwcompiler.frontend.source.concrete.writes import places_of


class Row(list):
    """A list that can be referred to weakly."""


def test_outputs_and_first_arguments():
    x, y, out = np.zeros(3), np.ones(3), np.zeros(3)
    for function, args, kwargs, written in (
            (np.add, (x, y, out), {}, out), (np.add, (x, y), {"out": out}, out), (np.sum, (x,), {"out": out}, out), (np.copyto, (out, x), {}, out),
            (np.dot, (x, y, out), {}, out), (x.cumsum, (), {"out": out}, out), (out.sort, (), {}, out), (np.add.at, (out, 0, 1.0), {}, out),
            (np.nan_to_num, (out, False), {}, out)):
        places = places_of(function)
        assert places is not None and any(one is written for one in places(args, kwargs)), function
    for function in (len, [].append, lambda x: x, np.frombuffer):
        places = places_of(function)
        assert places is None or not any(isinstance(one, np.ndarray) for one in places((), {}))


def test_what_is_called_is_not_kept():
    """Neither functions of the user's nor lists by their methods, which hold what was traced."""
    row, function = Row(), lambda x: x
    references = weakref.ref(row), weakref.ref(function)
    assert places_of(row.append) is None and places_of(function) is None
    del row, function
    assert [reference() for reference in references] == [None, None]
