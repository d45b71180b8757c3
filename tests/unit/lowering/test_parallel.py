"""Which loops are cut among threads, what a cut computes, and long sums in blocks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ir.loop import Kernel
from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.lowering import polls, program
from bwcompiler.lowering.kernels import parallel_calls
from bwcompiler.lowering.loops import blocks, parallel
from bwcompiler.lowering.loops.blocks import in_blocks
from bwcompiler.lowering.loops.parallel import pieces
from bwcompiler.runtime.pool import thread_pool
from bwcompiler.runtime.pool.thread_state import has_threads
from tests.support.kernels import Array, copies
from tests.support.threads import with_threads


@pytest.fixture(autouse=True)
def everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, limits in ((parallel, {"LEAST_WORK": 1, "GRAIN_WORK": 1, "LEAST_FILLED": 1}), (blocks, {"LEAST_WORK": 1, "BLOCK_WORK": 2, "PARTIAL_SHARE": 1})):
        for name, limit in limits.items():
            monkeypatch.setattr(module, name, limit)


def kernel_of(parameters: str, body: str) -> Kernel:
    kernel = parse_kernel(f"kernel k0({parameters})\n{body}")
    verify_kernel(kernel)
    return kernel


CUT = {
    "rows": ("%x: in f64[8,5], %y: out f64[8,5]", "  for i in 0..8\n    for j in 0..5 vector\n      store %y[i, j], %x[i, j] * 2.0\n"),
    "columns": ("%x: in f64[8,5], %y: out f64[5,8]", "  for i in 0..8\n    for j in 0..5\n      store %y[j, i], %x[i, j]\n"),
    "backwards": ("%x: in f64[9], %y: out f64[9]", "  for i in 0..9 vector\n    store %y[8 - i], %x[i]\n"),
    "sums of rows": ("%x: in f64[8,5], %y: out f64[8]", "  for i in 0..8\n    reduce s: f64 = add\n    for j in 0..5 vector\n      s add= %x[i, j]\n"
                     "    store %y[i], s\n"),
    "blocks of columns": ("%x: in f64[5,12], %y: out f64[5,12]",
                          "  for b in 0..3\n    for i in 0..5\n      for j in 0..4 vector\n        store %y[i, 4*b + j], %x[i, 4*b + j]\n"),
    "blocks of two blocks of columns": (
        "%x: in f64[5,12], %y: out f64[5,12]",
        "  for b in 0..3\n    for c in 0..2\n      for i in 0..5\n        for j in 0..2 vector\n"
        "          store %y[i, 4*b + 2*c + j], %x[i, 4*b + 2*c + j]\n"),
    "columns to the left": ("%x: in f64[5,8], %y: out f64[5,8]",
                            "  for b in 0..4\n    for i in 0..5\n      store %y[i, 7 - 2*b], 1.0\n      store %y[i, 6 - 2*b], %x[i, b]\n"),
    "own scratch": ("%x: in f64[8,5], %r: scratch f64[5], %y: out f64[8,5]",
                    "  for i in 0..8\n    for j in 0..5 vector\n      store %r[j], exp(%x[i, j])\n    for j in 0..5 vector\n"
                    "      store %y[i, j], %r[4 - j]\n"),
    "triangles": ("%x: in f64[6,6], %y: inout f64[6,6]", "  for i in 0..6\n    for j in 0..i + 1\n      store %y[i, j], %x[i, j] - 1.0\n"),
    "a fill": ("%y: out f64[30]", "  fill %y, 3.0\n"),
    "what is read before": ("%x: in f64[9], %h: in f64[], %y: out f64[9]",
                            "  let h = %h[] * 0.5\n  for i in 0..9 vector\n    store %y[i], %x[i] * h\n"),
}
WHOLE = {
    "a sum": ("%x: in f64[9], %y: out f64[]", "  reduce s: f64 = add\n  for i in 0..9 vector\n    s add= %x[i]\n  store %y[], s\n"),
    "a recurrence": ("%y: inout f64[9]", "  for i in 0..8\n    store %y[i + 1], %y[i] * 0.5\n"),
    "one row": ("%x: in f64[8,5], %y: inout f64[5]", "  for i in 0..8\n    for j in 0..5 vector\n      %y[j] add= %x[i, j]\n"),
    "data": ("%x: in f64[9], %v: in i64[9], %y: inout f64[9]", "  for i in 0..9\n    store %y[%v[i]], %x[i]\n"),
    "columns that overlap": ("%x: in f64[8], %y: inout f64[3,12]",
                             "  for b in 0..5\n    for i in 0..3\n      for j in 0..3\n        %y[i, 2*b + j] add= %x[b]\n"),
    "columns that run into the next row": ("%x: in f64[8], %y: inout f64[3,8]",
                                           "  for b in 0..5\n    for i in 0..2\n      for j in 0..2\n        store %y[i, 2*b + j], %x[b]\n"),
    "rows that overlap": ("%x: in f64[8], %y: inout f64[12]", "  for i in 0..8\n    for j in 0..3\n      %y[i + j] add= %x[i]\n"),
}


def test_what_is_read_where_a_part_writes_is_not_read_again():
    """A number in the memory of a result: the loop would read it when it is another one."""
    kernel = kernel_of("%n: in f64[], %m: out f64[], %x: in f64[9], %y: out f64[9]",
                       "  let m = %n[] - 1.0\n  store %m[], m\n  for i in 0..9 vector\n    store %y[i], %x[i] * m\n")
    number, *_ = kernel.buffers
    assert len(pieces(kernel)) == 2
    assert [piece.kernel for piece in pieces(kernel, {number})] == [kernel]


def test_a_long_chain_of_what_is_read_before_stands_in_its_order_in_every_part():
    length = 3000                                          # more than Python calls itself
    chain = "  let h0 = %h[] * 0.5\n" + "".join(f"  let h{k} = h{k - 1} * 0.5\n" for k in range(1, length))
    loops = f"  for i in 0..9 vector\n    store %y[i], h{length - 1}\n  for i in 0..9 vector\n    store %z[i], h1\n"
    first, second = pieces(kernel_of("%h: in f64[], %y: out f64[9], %z: out f64[9]", chain + loops))
    assert [statement.name for statement in first.kernel.body[:-1]] == [f"h{k}" for k in range(length)]
    assert [statement.name for statement in second.kernel.body[:-1]] == ["h0", "h1"]


def test_a_loop_that_counts_down_where_its_rows_are_read():
    """The adjoint of a loop over arrays that are cut among threads: its counter is written over the last one, in the kernel that reads it."""
    def run(a, b, rows, t):
        a, rows = a * 1.0, rows * 1.0
        for _ in b:
            a[2] = 0.5 * (b[3] + np.sum(rows ** 2))
            if t < 0.0:
                return a.sum() + rows.sum()
            rows[:, 3] *= np.sin(b[7])
        return a.sum() + rows.sum()
    rng = np.random.default_rng(0)
    bw.check_grads(run, (rng.uniform(-1, 1, 8), rng.uniform(-1, 1, 9), rng.uniform(-1, 1, (8, 9)), 0.7), order=1)


@pytest.mark.parametrize("name", CUT)
def test_independent_iterations_are_cut(name: str, rng: np.random.Generator) -> None:
    """In any ranges, in any order."""
    kernel = kernel_of(*CUT[name])
    arrays = arrays_for(kernel, rng)
    expected, found = copies(arrays), copies(arrays)
    run_kernel(kernel, expected)
    cuts = 0
    for piece in pieces(kernel):
        for words in ranges(piece.cut):
            run_kernel(piece.kernel, found, words)
        cuts += piece.cut is not None
    assert cuts == 1
    written = [k for k, buffer in enumerate(kernel.buffers) if buffer.role in ("out", "inout")]
    for k in written:
        np.testing.assert_array_equal(found[k], expected[k])


def test_short_fills_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory takes them as fast from one thread."""
    monkeypatch.setattr(parallel, "LEAST_FILLED", 1 << 10)
    kernel = kernel_of("%y: out f64[100], %z: out f64[200]", "  fill %y, 3.0\n  fill %z, 3.0\n")
    assert [piece.cut is not None for piece in pieces(kernel)] == [False, True]


@pytest.mark.parametrize("name", WHOLE)
def test_others_stay_whole(name: str) -> None:
    kernel = kernel_of(*WHOLE[name])
    assert [(piece.kernel, piece.cut) for piece in pieces(kernel)] == [(kernel, None)]


def ranges(cut: parallel.Cut | None) -> Iterator[tuple[int, ...]]:
    """The words of uneven parts, the last one first."""
    if cut is None:
        yield ()
        return
    assert isinstance(cut.extent, int)
    edges = [0, 1, cut.extent // 2, cut.extent]
    for first, end in reversed(list(itertools.pairwise(edges))):
        yield first, end - first


def arrays_for(kernel: Kernel, rng: np.random.Generator) -> list[Array]:
    return [rng.integers(0, 9, buffer.shape) if buffer.dtype.kind == "i" else rng.standard_normal(buffer.shape) for buffer in kernel.buffers]


SUMS = {
    "sums whose terms have scratch of their own": (
        "%x: in f64[36,5], %y: out f64[], %r: scratch f64[5]",
        "  reduce s: f64 = add\n  for i in 0..36\n    for j in 0..5 vector\n      store %r[j], 0.0\n    for k in 0..2\n      for j in 0..5 vector\n"
        "        %r[j] add= %x[i, j]\n    for j in 0..5 vector\n      s add= %r[j]\n  store %y[], s\n"),
    "total": ("%x: in f64[50], %y: out f64[]", "  reduce s: f64 = add\n  for i in 0..50 vector\n    s add= %x[i]\n  store %y[], s\n"),
    "maximum and sum": ("%x: in f64[7,9], %y: out f64[], %z: out f64[]",
                        "  reduce m: f64 = maximum\n  reduce s: f64 = add\n  for i in 0..7\n    for j in 0..9 vector\n      m maximum= %x[i, j]\n"
                        "      s add= %x[i, j]\n  store %y[], m\n  store %z[], s\n"),
    "sums over rows": ("%x: in f64[37,5], %y: out f64[5]", "  fill %y, 0.0\n  for i in 0..37\n    for j in 0..5 vector\n      %y[j] add= %x[i, j]\n"),
    "sums, and what every row writes": (
        "%x: in f64[37,5], %y: out f64[5], %z: out f64[37,5]",
        "  fill %y, 0.0\n  for i in 0..37\n    for j in 0..5 vector\n      let e = exp(%x[i, j])\n      store %z[i, j], e\n      %y[j] add= e\n"),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_in_blocks(name: str, rng: np.random.Generator) -> None:
    kernel = kernel_of(*SUMS[name])
    cut = in_blocks(kernel)
    assert cut is not kernel and ".blocks" in kernel_to_text(cut)
    verify_kernel(cut)
    arrays = arrays_for(kernel, rng)
    scratch = [np.full(buffer.shape, np.nan) for buffer in cut.buffers[len(kernel.buffers):]]
    expected, found = copies(arrays), [*copies(arrays), *scratch]
    run_kernel(kernel, expected)
    run_kernel(cut, found)
    for one, other in zip(found, expected, strict=False):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    assert any(piece.cut for piece in pieces(cut))


def test_short_loops_that_feed_the_same_sum_are_blocks(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The borders of a loop that was cut at guards, before and after it; what comes last reads the sum."""
    monkeypatch.setattr(blocks, "LEAST_WORK", 60)
    kernel = kernel_of("%x: in f64[50], %y: out f64[]", (
        "  reduce s: f64 = add\n  for i in 0..2\n    s add= %x[i] * 2.0\n  for i in 0..46 vector\n    s add= %x[i + 2]\n"
        "  for i in 0..2\n    s add= %x[i + 48] * 3.0\n  let half = s * 0.5\n  store %y[], half\n"))
    cut = in_blocks(kernel)
    verify_kernel(cut)
    assert kernel_to_text(cut).count("store %s.blocks") >= 3 and any(piece.cut for piece in pieces(cut))
    arrays = arrays_for(kernel, rng)
    run_kernel(cut, [*arrays, *[np.full(buffer.shape, np.nan) for buffer in cut.buffers[2:]]])
    x, y = arrays
    np.testing.assert_allclose(y, 0.5 * (2 * x[:2].sum() + x[2:48].sum() + 3 * x[48:].sum()), rtol=1e-13)


def test_borders_feed_some_of_the_sums(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sums of one loop, each without another end: a border is a block of the one that it feeds."""
    monkeypatch.setattr(blocks, "LEAST_WORK", 60)
    kernel = kernel_of("%x: in f64[50], %y: out f64[], %z: out f64[]", (
        "  reduce s: f64 = add\n  reduce m: f64 = maximum\n  s add= %x[0]\n  for i in 0..48\n    s add= %x[i + 1]\n    m maximum= %x[i + 1]\n"
        "  m maximum= %x[49]\n  store %y[], s\n  store %z[], m\n"))
    cut = in_blocks(kernel)
    verify_kernel(cut)
    assert cut is not kernel
    arrays = arrays_for(kernel, rng)
    run_kernel(cut, [*arrays, *[np.full(buffer.shape, np.nan) for buffer in cut.buffers[3:]]])
    x, y, z = arrays
    np.testing.assert_allclose(y, x[:49].sum(), rtol=1e-13)
    assert z == x[1:].max()


@pytest.mark.parametrize(("array", "count"), [("f64[256,256]", 4), ("f64[331,256]", 5), ("f32[256,256]", 0), ("f32[512,256]", 8)])
def test_blocks_have_one_length_where_they_can(array: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And numbers of half the size are added twice as fast: where that takes no time, there are none."""
    monkeypatch.undo()
    dtype, rows = array[:3], array[4:7]
    kernel = kernel_of(f"%x: in {array}, %y: in {array}, %s: out {dtype}[]", (
        f"  reduce total: {dtype} = add\n  for i in 0..{rows}\n    for j in 0..256 vector\n      total add= %x[i, j] * %y[i, j]\n"
        "  store %s[], total\n"))
    assert re.findall(r"blocks: scratch f\d+\[(\d+)\]", kernel_to_text(in_blocks(kernel))) == [str(count)] * (count > 0)


@pytest.mark.parametrize("body", [
    "  for i in 0..9\n    for j in 0..5 vector\n      %y[j] add= %x[i, j]\n",                          # adds to what was there
    "  fill %y, 0.0\n  for i in 0..9\n    for j in 0..5 vector\n      %y[j] add= %x[i, j] * %y[j]\n",      # reads what it sums up
], ids=["no start", "read"])
def test_what_is_no_plain_sum_has_no_blocks(body: str) -> None:
    kernel = kernel_of("%x: in f64[9,5], %y: inout f64[5]", body)
    assert in_blocks(kernel) is kernel


@pytest.mark.parametrize("function", [
    np.sum, lambda x: x.sum(0), lambda x: np.max(x, 1) + np.sum(x * x), lambda x: np.exp(x - x.max(1, keepdims=True)).sum(),
    lambda x: np.roll(x, 1, 0) + np.roll(x, -1, 1) * np.sum(x * np.roll(x, 2, 0)),
], ids=["total", "columns", "rows", "passes", "borders"])
def test_the_same_bits_for_any_number_of_threads(function, rng: np.random.Generator) -> None:
    x = rng.standard_normal((300, 70))
    compiled = bw.value_and_grad(lambda x: np.sum(np.sin(function(x))))
    results = [with_threads(count, compiled, x) for count in (1, 2, 3)]
    for value, gradient in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])


@pytest.mark.skipif(not has_threads(), reason="needs the pool's threads")
@pytest.mark.parametrize("poll_work", [1 << 10, 1 << 20], ids=["iterations that look for signals", "short iterations"])
def test_blocks_share_a_region(poll_work: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long they are: what looks for signals inside of a block does not hand them to the pool one by one."""
    monkeypatch.setattr(polls, "POLL_WORK", poll_work)
    monkeypatch.setattr(program, "POLL_WORK", poll_work)
    monkeypatch.setattr(parallel_calls, "CHUNK_WORK", 32 * poll_work)
    x = np.linspace(0, 1, 1 << 16)
    pool, threads = thread_pool.pool(), bw.get_num_threads()
    bw.set_num_threads(2)
    try:
        total = bw.jit(lambda x: np.sum(np.exp(x) * x))
        expected = total(x)
        pool.wake_up()
        before = pool.word("regions") + pool.word("rested")
        assert total(x) == expected
        assert pool.word("regions") + pool.word("rested") == before + 1
    finally:
        bw.set_num_threads(threads)
