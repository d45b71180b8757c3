"""Which loops are the passes, and which axis vectors run along."""

from __future__ import annotations

import pytest

from bwcompiler.ir.contracts.fusion import FusionGroup
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.lowering.loops.building import loop_order
from bwcompiler.lowering.loops.building.loop_order import inner_axes, lane_axis, panel_width
from bwcompiler.passes.fusion.fuse import fuse

NORMALISED = """
graph g(%x: f64[ROWS,COLUMNS]) -> f64[ROWS,COLUMNS] {
  %e: f64[ROWS,COLUMNS] = FUNCTION %x
  %total: f64[KEPT] = sum %e {axes=[REDUCED]}
  %wide: f64[ROWS,COLUMNS] = broadcast %total {shape=[ROWS,COLUMNS], axes=[OTHER]}
  %ratio: f64[ROWS,COLUMNS] = divide %e, %wide
  return %ratio
}"""


def group_of(text: str) -> FusionGroup:
    (group,) = fuse(parse_graph(text)).steps
    assert isinstance(group, FusionGroup)
    return group


def normalised(rows: int, columns: int, reduced: int = 1, function: str = "exp") -> FusionGroup:
    words = {"ROWS": rows, "COLUMNS": columns, "KEPT": (columns, rows)[reduced], "REDUCED": reduced, "OTHER": 1 - reduced,
             "FUNCTION": function}
    text = NORMALISED
    for word, value in words.items():
        text = text.replace(word, str(value))
    return group_of(text)


def order_of(group: FusionGroup) -> tuple[list[int], int | None]:
    """(inner axes, lane axis)"""
    inner = sorted(inner_axes(group) if group.inner is None else group.inner)
    return inner, lane_axis(group, inner, [axis for axis in range(len(group.extents)) if axis not in inner])


@pytest.mark.parametrize("group, expected", [
    (normalised(50, 40), ([1], None)),                                   # rows, one after the other
    (normalised(50, 40, reduced=0), ([0], 1)),                           # columns, side by side
    (normalised(100, 10), ([1], 0)),                                     # short rows of dear elements, side by side
    (normalised(63, 10), ([1], None)),                                   # too few of them
    (normalised(100, 33), ([1], None)),                                  # too long
    (normalised(100, 10, function="absolute"), ([1], None)),             # too cheap
    (normalised(100, 0), ([1], None)),                                   # empty
    (normalised(10, 0, reduced=0), ([0], None)),
], ids=["rows", "columns", "short", "few", "long", "cheap", "empty rows", "empty columns"])
def test_order(group, expected):
    assert order_of(group) == expected


@pytest.mark.parametrize("places, strides, expected", [(200, 1, 0), (63, 1, None), (200, 2, None)])
def test_windows_that_slide_by_one_lie_side_by_side(places, strides, expected):
    """However cheap what is done with their elements is, and however long they are."""
    extent = strides * (places - 1) + 40
    group = group_of(f"""graph g(%x: f64[{extent}], %k: f64[40]) -> f64[{places}] {{
  %w: f64[{places},40] = windows %x {{sizes=[40], strides=[{strides}], low=[0], high=[0], dilations=[1]}}
  %b: f64[{places},40] = broadcast %k {{shape=[{places},40], axes=[1]}}
  %m: f64[{places},40] = multiply %w, %b
  %y: f64[{places}] = sum %m {{axes=[1]}}
  return %y
}}""")
    assert order_of(group) == ([1], expected)


def test_open_groups_run_along_the_last_axis():
    group = group_of("graph g(%x: f64[4,5,6]) -> f64[4,5,6] {\n  %y: f64[4,5,6] = exp %x\n  return %y\n}")
    assert group.inner is None
    assert inner_axes(group) == {2}
    scalar = group_of("graph g(%x: f64[]) -> f64[] {\n  %y: f64[] = exp %x\n  return %y\n}")
    assert inner_axes(scalar) == frozenset()
    assert lane_axis(scalar, [], []) is None


@pytest.mark.parametrize("shape, axes, kept, expected", [
    ("9,4,4", "1,2", "9", {1, 2}), ("9,8,8", "1,2", "9", {2}), ("9,4,4", "1", "9,4", {2}), ("4,4", "0,1", "", {1})])
def test_short_rows_are_all_axes_that_are_summed(shape, axes, kept, expected):
    group = group_of(f"graph g(%x: f64[{shape}]) -> f64[{kept}] {{\n  %y: f64[{kept}] = sum %x {{axes=[{axes}]}}\n  return %y\n}}")
    assert group.inner is None
    assert inner_axes(group) == expected


def test_searches_have_no_lanes():
    group = group_of("graph g(%x: f64[100,10]) -> i64[10] {\n  %y: i64[10] = argmax %x {axes=[0]}\n  return %y\n}")
    assert order_of(normalised(100, 10, reduced=0)) == ([0], 1)
    assert lane_axis(group, [0], [1]) is None


@pytest.mark.parametrize("rows, columns, expected", [
    (3, 16, 16), (3, 17, 32), (3, 64, 64), (3, 100, 112), (3, 200, 208), (3, 1000, 1008), (3, 1024, 512), (3, 1100, 560),
    (1 << 20, 1024, 64)])                                            # tall columns: narrow panels, that stay in cache
def test_width_of_panels(rows, columns, expected):
    group = normalised(2, columns, reduced=0)
    group.extents[0] = rows
    width = panel_width(group, [0], 1)
    assert width == expected
    assert width % 16 == 0


def test_panels_are_of_nearly_one_width():
    """The last panel is not a sliver: it has at least half the columns of the others, where there are several."""
    low, high = loop_order.PANEL_LIMITS
    for columns in range(low, 5000, 61):
        width = panel_width(normalised(3, columns, reduced=0), [0], 1)
        whole, rest = divmod(columns, width)
        assert whole <= 1 or not rest or rest >= width // 2, (columns, width)
        assert width <= 2 * high


def test_short_rows_are_handled_in_panels_of_their_own():
    assert panel_width(normalised(150, 5), [1], 0) == loop_order.SHORT_ROWS
