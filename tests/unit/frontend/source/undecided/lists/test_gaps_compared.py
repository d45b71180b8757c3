"""Lists with as many elements as data say, compared with others: `kept == []`."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError

INPUTS = [np.array(x) for x in ([0.5, 0.7, 0.2], [0.1, 0.2, 0.3], [0.8, 0.7, 0.2], [0.3, 1.2, 0.4], [0.5, 0.7, 0.2])]


def kept(x):
    return [v for v in x if v > 0.4]


def some(x):
    return (x[0],) if x[0] > 0.6 else (x[1], x[2])


def with_nothing(x):
    found = kept(x)
    if found == []:
        return x[2]
    return x[0] + (1.0 if found != [] else 2.0)


def with_known_ones(x):
    found = kept(x)
    return (1.0 if found == [x[1]] else 0.0) + (2.0 if found != [x[0], x[1]] else 0.0) + (4.0 if found == (x[1],) else 0.0)


def with_others(x):
    return (1.0 if kept(x) == kept(x) else 0.0) + (2.0 if some(x) == some(x[::-1]) else 0.0) + (4.0 if some(x) != (x[0],) else 0.0)


def in_others(x):
    return (1.0 if (kept(x), 1) == ([], 1) else 0.0) + (2.0 if [kept(x), 1] != [[x[1]], 1] else 0.0)


@pytest.mark.parametrize("fun", [with_nothing, with_known_ones, with_others, in_others], ids=lambda fun: fun.__name__)
def test_equal_or_not(fun):
    compiled = bw.jit(fun)
    for x in INPUTS:
        assert compiled(x) == fun(x)


@pytest.mark.parametrize("fun", [lambda x: {"a": kept(x)} == {"a": []}, lambda x: [] in [kept(x), [x[0]]], lambda x: kept(x) < [x[0]]],
                         ids=["dictionaries", "in", "order"])
def test_other_comparisons_are_refused(fun):
    with pytest.raises(TracerError, match="number of elements depends on data"):
        bw.jit(fun)(INPUTS[0])
