"""Loop trees of fusion groups: one golden file per shape of tree, and results by the loop interpreter and by native code."""

from __future__ import annotations

import re
import textwrap

import numpy as np
import pytest

from bwcompiler.ir.loop import INPUT, SCRATCH, Kernel
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.ir.types import BOOL
from bwcompiler.lowering.loops.building import build_loops
from bwcompiler.lowering.loops.building.kernel_layout import KernelLayout
from bwcompiler.passes.fusion.fuse import fuse
from bwcompiler.passes.memory import find_updates
from tests.support.graph_strategies import run_compiled
from tests.support.lowered_programs import assert_near, run_steps, steps_of

GRAPHS = {
    "elementwise": """
graph g(%x: f64[4,40], %y: f64[40], %z: f64[4,1]) -> f64[4,40] {
  %wide: f64[4,40] = broadcast %y {shape=[4,40], axes=[1]}
  %column: f64[4] = reshape %z {shape=[4]}
  %tall: f64[4,40] = broadcast %column {shape=[4,40], axes=[0]}
  %product: f64[4,40] = multiply %x, %wide
  %sum: f64[4,40] = add %product, %tall
  return %sum
}""",
    "scalar": """
graph g(%x: f64[], %y: f64[]) -> (f64[], bool[]) {
  %ratio: f64[] = divide %x, %y
  %less: bool[] = less %ratio, 1.0
  return %ratio, %less
}""",
    "row_passes": """
graph g(%x: f64[5,40]) -> f64[5,40] {
  %total: f64[5] = sum %x {axes=[1]}
  %mean: f64[5] = divide %total, 40.0
  %wide: f64[5,40] = broadcast %mean {shape=[5,40], axes=[0]}
  %off: f64[5,40] = subtract %x, %wide
  %square: f64[5,40] = multiply %off, %off
  %variance: f64[5] = sum %square {axes=[1]}
  %again: f64[5,40] = broadcast %variance {shape=[5,40], axes=[0]}
  %ratio: f64[5,40] = divide %off, %again
  return %ratio
}""",
    "dear_members_are_saved": """
graph g(%x: f64[5,40]) -> f64[5,40] {
  %e: f64[5,40] = exp %x
  %total: f64[5] = sum %e {axes=[1]}
  %wide: f64[5,40] = broadcast %total {shape=[5,40], axes=[0]}
  %ratio: f64[5,40] = divide %e, %wide
  return %ratio
}""",
    "rows_of_a_panel_one_by_one": """
graph g(%x: f64[70,20], %w: f64[20]) -> (f64[], f64[20]) {
  %wide: f64[70,20] = broadcast %w {shape=[70,20], axes=[1]}
  %product: f64[70,20] = multiply %x, %wide
  %height: f64[70] = sum %product {axes=[1]}
  %e: f64[70] = exp %height
  %total: f64[] = sum %e {axes=[0]}
  %tall: f64[70,20] = broadcast %e {shape=[70,20], axes=[0]}
  %weighted: f64[70,20] = multiply %x, %tall
  %slope: f64[20] = sum %weighted {axes=[0]}
  return %total, %slope
}""",
    "only_what_a_later_pass_reads_is_in_panels": """
graph g(%x: f64[3,200]) -> f64[3,200] {
  %total: f64[200] = sum %x {axes=[0]}
  %none: bool[200] = less_equal %total, 0.0
  %root: f64[200] = sqrt %total
  %scale: f64[200] = select %none, 1.0, %root
  %wide: f64[3,200] = broadcast %scale {shape=[3,200], axes=[1]}
  %ratio: f64[3,200] = divide %x, %wide
  return %ratio
}""",
    "columns_in_panels": """
graph g(%x: f64[3,200]) -> f64[3,200] {
  %total: f64[200] = sum %x {axes=[0]}
  %wide: f64[3,200] = broadcast %total {shape=[3,200], axes=[1]}
  %ratio: f64[3,200] = divide %x, %wide
  return %ratio
}""",
    "columns_in_panels_and_a_rest": """
graph g(%x: f64[3,1100]) -> (f64[3,1100], f64[3]) {
  %total: f64[1100] = sum %x {axes=[0]}
  %wide: f64[3,1100] = broadcast %total {shape=[3,1100], axes=[1]}
  %ratio: f64[3,1100] = divide %x, %wide
  %rows: f64[3] = sum %ratio {axes=[1]}
  return %ratio, %rows
}""",
    "short_rows_side_by_side": """
graph g(%x: f64[150,5]) -> f64[150,5] {
  %e: f64[150,5] = exp %x
  %total: f64[150] = sum %e {axes=[1]}
  %wide: f64[150,5] = broadcast %total {shape=[150,5], axes=[0]}
  %ratio: f64[150,5] = divide %e, %wide
  return %ratio
}""",
    "sum_of_all": """
graph g(%x: f32[5,40]) -> f32[] {
  %square: f32[5,40] = multiply %x, %x
  %total: f32[] = sum %square {axes=[0,1]}
  return %total
}""",
    "sum_over_rows_into_memory": """
graph g(%x: f64[5,40]) -> (f64[40], f64[5,40]) {
  %twice: f64[5,40] = add %x, %x
  %total: f64[40] = sum %twice {axes=[0]}
  return %total, %twice
}""",
    "sum_over_the_middle": """
graph g(%x: f64[2,3,40]) -> f64[2,40] {
  %total: f64[2,40] = sum %x {axes=[1]}
  return %total
}""",
    "reductions_of_several_kinds": """
graph g(%x: f64[6,5]) -> (f64[6], i64[6], f64[6], f64[]) {
  %max: f64[6] = max %x {axes=[1]}
  %best: i64[6] = argmax %x {axes=[1]}
  %prod: f64[6] = prod %x {axes=[1]}
  %sum: f64[] = sum %max {axes=[0]}
  return %max, %best, %prod, %sum
}""",
    "logic": """
graph g(%x: f64[4,6]) -> (bool[4], bool[6]) {
  %positive: bool[4,6] = greater %x, 0.0
  %some: bool[4] = any %positive {axes=[1]}
  %every: bool[6] = all %positive {axes=[0]}
  return %some, %every
}""",
    "pieces_without_tests": """
graph g(%x: f64[20], %y: f64[30]) -> f64[50] {
  %both: f64[50] = concatenate %x, %y {axis=0}
  %half: f64[50] = multiply %both, 0.5
  return %half
}""",
    "padded_twice": """
graph g(%x: f64[3,20]) -> f64[6,40] {
  %p: f64[6,40] = pad %x {low=[1,10], high=[2,10], value=0.5}
  return %p
}""",
    "update_of_a_row": """
graph g(%x: f64[4,5], %v: f64[1,5]) -> f64[4,5] {
  %twice: f64[1,5] = add %v, %v
  %y: f64[4,5] = slice_update %x, %twice {starts=[2,0], steps=[1,1]}
  %z: f64[4,5] = slice_add %y, %v {starts=[1,0], steps=[1,1]}
  return %z
}""",
    "gathered": """
graph g(%x: f64[6,3], %i: i64[4]) -> f64[4,3] {
  %rows: f64[4,3] = gather %x, %i {axes=[0]}
  %more: f64[4,3] = add %rows, 1.0
  return %more
}""",
    "moved": """
graph g(%x: f64[4,6]) -> f64[3,4] {
  %t: f64[6,4] = transpose %x {axes=[1,0]}
  %s: f64[3,4] = slice %t {starts=[5,0], sizes=[3,4], steps=[-2,1]}
  %f: f64[3,4] = flip %s {axes=[1]}
  %h: f64[3,4] = multiply %f, 2.0
  return %h
}""",
    "positions": """
graph g(%x: f64[3,4]) -> f64[3,4] {
  %i: f64[3,4] = iota {shape=[3,4], axis=1, dtype=f64}
  %y: f64[3,4] = multiply %x, %i
  return %y
}""",
    "no_elements": """
graph g(%x: f64[0,40]) -> (f64[40], f64[0,40]) {
  %total: f64[40] = sum %x {axes=[0]}
  %wide: f64[0,40] = broadcast %total {shape=[0,40], axes=[1]}
  %off: f64[0,40] = subtract %x, %wide
  return %total, %off
}""",
    "extents_of_one": """
graph g(%x: f64[1,3,1]) -> f64[1,1] {
  %total: f64[1,1] = sum %x {axes=[1]}
  %half: f64[1,1] = multiply %total, 0.5
  return %half
}""",
}


def arguments_of(graph, rng):
    found = []
    for value in graph.inputs:
        if value.dtype.is_integer:
            found.append(rng.integers(0, 4, value.shape))
        else:
            found.append(np.asarray(rng.uniform(0.5, 2, value.shape) * rng.choice((-1, 1), value.shape), value.dtype.numpy))
    return found


@pytest.mark.parametrize("name", GRAPHS)
def test_tree(name, golden, rng):
    graph, steps = steps_of(GRAPHS[name])
    golden("\n".join(kernel_to_text(step.kernel) for step in steps), "loops")
    arguments = arguments_of(graph, rng)
    interpreted = run_steps(graph, steps, arguments)
    exact = "exp" not in GRAPHS[name]
    for found, ran, meant in zip(interpreted, run_compiled(graph, arguments), interpret(graph, arguments), strict=True):
        assert_near(found, np.asarray(meant), name)
        if exact:
            np.testing.assert_array_equal(ran, found, "native code differs from its loops")
        else:
            assert_near(np.asarray(ran), found, "native code differs from its loops")


def kernel_of(text: str) -> Kernel:
    """Of a graph that is one kernel."""
    _, (step,) = steps_of(text)
    assert step.kernel is not None
    return step.kernel


def scratch_of(kernel: Kernel) -> list[str]:
    return [buffer.name for buffer in kernel.buffers if buffer.role == SCRATCH]


def test_cheap_members_are_computed_again():
    """exp(x) is kept for the second pass; |x| is not."""
    text = GRAPHS["dear_members_are_saved"]
    assert scratch_of(kernel_of(text)) == ["e.row"]
    assert scratch_of(kernel_of(re.sub(r"\bexp\b", "absolute", text))) == []


def test_what_is_stored_anyway_is_not_kept_twice():
    text = GRAPHS["dear_members_are_saved"].replace("-> f64[5,40]", "-> (f64[5,40], f64[5,40])").replace("return", "return %e,")
    kernel = kernel_of(text)
    assert scratch_of(kernel) == []
    assert kernel_to_text(kernel).count("exp(") == 1


def test_owners_are_the_values_whose_memory_a_kernel_gets():
    graph, (step,) = steps_of(GRAPHS["dear_members_are_saved"])
    values = {value.name: value for value in (*graph.inputs, *graph.body)}
    assert dict(zip([b.name for b in step.kernel.buffers], step.owners, strict=True)) == {
        "x": values["x"], "e.row": None, "ratio": values["ratio"]}
    assert (step.reads, step.writes, step.scratch) == ([values["x"]], [values["ratio"]], [40 * 8])


def test_updates_write_into_the_array_they_get(monkeypatch, rng):
    """A chain of updates is one parameter, before, in between and after: only what changes is written."""
    monkeypatch.setattr(find_updates, "CHAIN", 2)
    monkeypatch.setattr(find_updates, "SHARE", 1)
    text = GRAPHS["update_of_a_row"].replace("return %z", "%w: f64[4,5] = slice_update %z, %twice {starts=[3,0], steps=[1,1]}\n  return %w")
    graph, steps = steps_of(text)
    step = steps[-1]
    values = {value.name: value for value in (*graph.inputs, *graph.body)}
    assert [tuple(update)[:2] for update in step.updates] == [(values["y"], values["w"])]
    assert kernel_to_text(step.kernel) == """\
kernel k1(%w: inout f64[4,5], %v: in f64[1,5])
  for i0 in 0..5 vector
    %w[1, i0] add= %v[0, i0]
    let twice = %v[0, i0] + %v[0, i0]
    store %w[3, i0], twice
"""
    arguments = arguments_of(graph, rng)
    np.testing.assert_array_equal(run_steps(graph, steps, arguments)[0], interpret(graph, arguments)[0])


@pytest.mark.parametrize("name", GRAPHS)
def test_every_input_is_one_parameter(name):
    for step in steps_of(GRAPHS[name])[1]:
        owners = [owner for owner, buffer in zip(step.owners, step.kernel.buffers, strict=True) if buffer.role == INPUT]
        assert len(set(owners)) == len(owners)


def test_sums_of_f32_over_several_loops_are_taken_in_double():
    """One term after the other: digits would be lost.  A row has lanes instead."""
    assert "reduce total: f64 = add" in kernel_to_text(kernel_of(GRAPHS["sum_of_all"]))
    row = "graph g(%x: f32[200]) -> f32[] {\n  %total: f32[] = sum %x {axes=[0]}\n  return %total\n}"
    assert "reduce total: f32 = add" in kernel_to_text(kernel_of(row))


def test_logic_is_stored_as_bytes():
    assert all(b.dtype is BOOL for b in kernel_of(GRAPHS["logic"]).buffers if b.role != INPUT)


def indented(text: str, first: str) -> str:
    """The indented block of a text that begins with this word, without comments."""
    block = re.search(rf"^    {first} (?:.*\n(?:    .*\n)*)", text, re.MULTILINE)
    assert block is not None
    return re.sub(r" +;.*", "", textwrap.dedent(block.group()))


def test_the_example_of_the_docstring():
    graph = parse_graph(indented(build_loops.__doc__, "graph"))
    (group,) = fuse(graph).steps
    kernel, arrays = build_loops.build_kernel(graph.name, group, set(graph.outputs), set())
    assert kernel_to_text(kernel) == indented(build_loops.__doc__, "kernel")
    assert arrays == [graph.inputs[0], None, graph.outputs[0]]


def test_the_layout_of_the_example():
    graph = parse_graph(indented(build_loops.__doc__, "graph"))
    (group,) = fuse(graph).steps
    layout = KernelLayout(group, set(graph.outputs), set())
    when = ", ".join(f"{value.name}: {number}" for value, number in layout.when.items())
    said = " ".join((KernelLayout.__doc__ or "").split())
    assert f"outer {layout.outer}, inner {layout.inner}; passes {layout.passes}, steps {layout.steps} " in said
    assert f"when {{{when}}}" in said and f"saved {{{', '.join(value.name for value in layout.saved)}}}" in said
