"""Lists that have other elements after one side of a branch than after the other, which are returned or have other names."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError
from tests.support.gradcheck import central_differences

INPUTS = [np.array(x) for x in ([0.5, 0.7, 0.2], [0.5, 1.3, 0.2], [0.1, 1.4, -0.2], [-0.1, 0.7, -0.3], [1.6, 0.7, 0.9], [0.5, 0.7, 0.2])]


def nothing_from_a_loop(x):
    def parts(v):
        for k in range(2):
            if abs(v[k]) > 1.2:
                return []
        return [v[0] * 2, v[1] * v[2]]

    found = parts(x)
    return sum(found) + len(found) * x[0]


def nothing_or_what_was_kept(x):
    def squares(v):
        for k in range(2):
            if abs(v[k]) > 1.2:
                return []
        kept = []
        for one in v:
            if one > 0:
                kept.append((one, one * one))
        return kept

    found = squares(x)
    if not found:
        return x[1]
    return sum(a * b for a, b in found) + len(found) * x[0] + found[-1][1]


def pieces_of_a_line(x):
    def pieces(v):
        cuts = []
        for k in range(2):
            if abs(v[k]) < 0.3:
                if v[k + 1] > 1.2:
                    return []
                continue
            cuts.append(v * v[k])
        if v[0] > 1.5:
            return []
        places = np.concatenate(cuts)
        places = np.sort(places[(places > -1) & (places < 2)])
        found = []
        for a, b in zip(places[:-1], places[1:], strict=False):  # noqa: RUF007
            if b > a:
                found.append((1, b - a))
        return found

    total = x[0]
    for i, w in pieces(x):
        total += i * w * w
    return total


def other_empty_things(x):
    def found(v):
        for k in range(3):
            if v[k] > 1.2:
                return (), {}
        return (v[0], v[1]), {}

    a, b = found(x)
    return sum(a) + len(b) + x[2]


def several_returns(x):
    def found(v):
        if v[0] > 1:
            return [v[0]]
        if v[1] > 1:
            return []
        if v[2] > 0:
            return [v[0], v[2] * v[1], v[1]]
        return [v[1], v[0]]

    y = found(x)
    return sum(k * one for k, one in enumerate(y, 1)) + (y[0] if y else x[2]) * len(y)


def one_list_is_from_before(x):
    kept = [x[0], x[1] * x[2]]
    both = {"kept": kept}
    if x[1] > 1:
        kept = [one for one in both["kept"] if one > 0.4]
    return sum(kept) * x[1] + sum(both["kept"])


def of_arrays_and_objects(x):
    class Piece:
        def __init__(self, a, v):
            self.a, self.v = a, v

    def pieces(v):
        if v[1] > 1:
            return [Piece(v[0], v * v)]
        return [Piece(v[0], v * 2), Piece(v[1], np.sin(v))]

    return sum([one.a * np.sum(one.v) for one in pieces(x)])


def changed_after_the_branch(x):
    def parts(v):
        return [] if v[1] > 1 else [v[0], v[1]]

    found = parts(x)
    found.append(x[2] * x[0])
    return sum([k * one for k, one in enumerate(found, 1)])


def in_an_object(x):
    class State:
        parts = None

    state = State()
    if x[1] > 1:
        state.parts = []
    else:
        state.parts = [x[0] * x[1], x[2]]
    return sum(state.parts) + len(state.parts)


def lists_in_a_list(x):
    def parts(v, k):
        if v > 0.613 + 0.1 * k:
            return []
        return [(j, v * j * k) for j in range(4) if v * j < 1.003]

    rows = []
    for k in range(9):
        row = []
        for m in range(5):
            row.append(parts(x[0] * 0.2 * m + 0.01 * k, k))
        rows.append(row)
    total = 0.0
    for row in rows:
        for found in row:
            if not found:
                continue
            total += sum([j * w * w for j, w in found]) / len(found)
    return total


def one_text_for_all_kinds(x):
    def chosen(a, b):
        if x[1] > 1:
            return a
        return b

    both = [x[2], x[0]]
    first = chosen([x[0]], [x[1], x[2]])
    second = chosen([x[0]], [x[1]])
    third = chosen(both, both)
    third.append(x[1])
    fourth = chosen(x[0] * 2, x[1])
    fifth = chosen([one for one in x if one > 0.3], [one for one in x if one > 0.6])
    sixth = chosen([], [x[0], x[1], x[2]])
    return sum(first) + second[0] * len(second) + sum(both) * len(third) + fourth + sum(fifth) * len(fifth) + sum(sixth)


PROGRAMS = [nothing_from_a_loop, nothing_or_what_was_kept, pieces_of_a_line, other_empty_things, several_returns, one_list_is_from_before,
            of_arrays_and_objects, changed_after_the_branch, in_an_object, lists_in_a_list,
            one_text_for_all_kinds]


@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda fun: fun.__name__)
def test_values_and_gradients(fun):
    compiled = bw.value_and_grad(fun)
    for x in INPUTS:
        value, slope = compiled(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, central_differences(fun, x), rtol=1e-6, atol=1e-8)


def test_lists_in_a_list_are_filled_by_a_recorded_loop():
    assert "unrolled" not in str(bw.jit(lists_in_a_list).explain(INPUTS[0]))


def changed_by_its_other_name(x):
    kept = [x[0], x[1]]
    other = kept
    chosen = kept if x[0] > 0.3 else [x[2]]
    other.append(x[2])
    return sum(chosen)


def kept_from_an_iteration_before(x):
    kept, chosen, total = [x[0]], [], 0.0
    for k in range(6):
        kept[0] = kept[0] * 0.9
        total += sum(chosen)
        chosen = kept if x[1] * k > 1.1 else []
    return total


@pytest.mark.parametrize("fun", [changed_by_its_other_name, kept_from_an_iteration_before], ids=lambda fun: fun.__name__)
def test_changes_of_a_list_that_may_be_the_result_are_seen_or_refused(fun):
    compiled = bw.value_and_grad(fun)
    for x in INPUTS:
        try:
            value, slope = compiled(x)
        except BwError:
            continue
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, central_differences(fun, x), rtol=1e-6, atol=1e-8)
