"""Indices that are known to be of different places are; and where that is not known, there are such that are not."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.ops.indexing.distinct_indices import are_distinct

LINE = "%k: i64[4] = broadcast %n {shape=[4], axes=[]}\n%i: i64[4] = iota {shape=[4], axis=0, dtype=i64}\n"
COLUMN = "%c: i64[4,3] = iota {shape=[4,3], axis=0, dtype=i64}\n"
ROW = "%r: i64[4,3] = iota {shape=[4,3], axis=1, dtype=i64}\n"
TWICE = "%two: i64[4] = full {value=2, shape=[4], dtype=i64}\n%t: i64[4] = multiply %i, %two\n"

# the body, the indices, whether they are known to be distinct
INDICES = {
    "a line": (LINE + "%a: i64[4] = add %k, %i\n", "a", True),
    "in range": (LINE + "%a: i64[4] = add %i, %k\n%w: i64[4] = normalize_index %a {extent=4}\n", "w", True),
    "once around": (LINE + "%a: i64[4] = add %i, %k\n%w: i64[4] = normalize_index %a {extent=3}\n", "w", False),
    "in steps": (LINE + TWICE + "%a: i64[4] = subtract %k, %t\n%w: i64[4] = wrap_index %a {extent=7}\n", "w", True),
    "in steps, around": (LINE + TWICE + "%a: i64[4] = subtract %k, %t\n%w: i64[4] = wrap_index %a {extent=6}\n", "w", False),
    "taken back": (LINE + "%a: i64[4] = add %i, %k\n%b: i64[4] = subtract %a, %i\n", "b", False),
    "squares": (LINE + "%a: i64[4] = multiply %i, %i\n", "a", False),
    "data": (LINE, "m", False),
    "a number": (LINE, "n", True),
    "the same number": (LINE, "k", False),
    "a block": (COLUMN + ROW, "cr", True),
    "a column for all": (COLUMN + ROW, "c", False),
    "a diagonal": (COLUMN + ROW + "%d: i64[4,3] = add %c, %r\n", "d", False),
    "a diagonal and a row": (COLUMN + ROW + "%d: i64[4,3] = add %c, %r\n", "dr", False),
    "of lines": (LINE + "%a: i64[4] = add %k, %i\n%l: i64[4,3] = broadcast %a {shape=[4,3], axes=[0]}\n" + ROW, "lr", True),
}


@pytest.mark.parametrize("case", INDICES)
def test_what_is_known(case):
    body, names, known = INDICES[case]
    graph = parse_graph(f"graph g(%n: i64[], %m: i64[4]) -> (i64[]) {{\n{body}return %n\n}}")
    values = {value.name: value for value in (*graph.inputs, *graph.body)}
    assert are_distinct([values[name] for name in names]) is known


def overlap_and_add(x, places):
    y = np.zeros(600)
    for place in places:
        y[place:place + 20] += x[:20] * x[place]
    return np.sum(y ** 2)


def test_windows_have_no_table_of_who_wrote_last(rng):
    x, places = rng.standard_normal(600), np.arange(0, 500, 7)
    bw.check_grads(lambda x: overlap_and_add(x, places), (x,))
    text = bw.grad(overlap_and_add).as_text("simplified", x, places)
    assert "i64[600]" not in text and text.count("= scatter_update") == 1            # of y; its cotangent stays as it is


def test_repeated_indices_still_have_one(rng):
    places = np.array([1, 4, 1, 2])

    def last(x):
        y = x * 1.0
        y[places] = x[:4] ** 2
        return np.sum(y ** 2)

    bw.check_grads(last, (rng.standard_normal(6),))
