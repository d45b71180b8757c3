"""Loops that reduce into lanes: whole strips of LANES iterations, in blocks, then the tail; iteration j works on lane j % LANES.

    | strip | strip | ... flush | strip | strip | ... flush | ... | strip | strip | tail |
    BLOCK strips                  BLOCK strips                  fewer strips    fewer than LANES iterations

After each whole block the lanes of float sums are flushed: added to the totals of blocks, and reset.  Without such sums, and where there is
no whole block, there are only strips.  A strip is LANES / width vectors; the tail is masked vectors, or shorter ones.

Accumulators in lanes, and how these are combined: `lanes.py`, `accumulators.py`.  The order of additions is that of
`ir/semantics/reduction_tree.py`, whatever the width of vectors.  An extent is a number (`strip_loop`), or depends on an outer loop
(`_moving_strip_loop`), which then counts strips, blocks and the tail while it runs.
"""

from __future__ import annotations

from bwcompiler.ir.extent import Affine, upper
from bwcompiler.ir.loop import Accumulator, Loop
from bwcompiler.ir.semantics.reduction_tree import BLOCK, LANES, flushed_sums
from bwcompiler.lowering.kernels.analysis.loop_bodies import Body
from bwcompiler.lowering.kernels.analysis.vector_loops import can_mask, can_mask_any_number, halves, power_of_two, strip_width, worthwhile
from bwcompiler.lowering.kernels.emitter.iterations import Iterations


def strip_loop(emitter: Iterations, loop: Loop, body: Body) -> None:
    """The loop, whose accumulators are in lanes."""
    width = strip_width(body, emitter.emit.target)
    if not (body.independent and worthwhile(body, emitter.emit.target)):
        width = 1
    if not isinstance(loop.extent, int):
        _moving_strip_loop(emitter, loop, body, loop.extent, width)
        return
    strips, tail = divmod(loop.extent, LANES)
    sums = flushed_sums(loop)
    if strips >= BLOCK and sums:
        _blocks(emitter, loop, strips, width, sums)
    elif strips == 1 and width == LANES:
        _lane_vector(emitter, loop, "0", "0", width)
    elif strips:
        with emitter.each(loop, strips, LANES) as first:
            _strip(emitter, loop, first, width)
    _tail(emitter, loop, body, strips * LANES, tail, width)


def _moving_strip_loop(emitter: Iterations, loop: Loop, body: Body, extent: Affine, width: int) -> None:
    """The same for an extent that depends on an outer loop."""
    put = emitter.emit.put
    total, done = emitter.affine(extent), "0"              # iterations; strips that are done
    strips = put(f"sdiv i64 {total}, {LANES}")
    if upper(extent) >= LANES * BLOCK and flushed_sums(loop):
        blocks = put(f"sdiv i64 {strips}, {BLOCK}")
        with emitter.turns(blocks) as block:
            start = put(f"mul i64 {block}, {BLOCK}")
            with emitter.turns(str(BLOCK), False) as strip:
                _strip(emitter, loop, put(f"mul i64 {put(f'add i64 {start}, {strip}')}, {LANES}"), width)
            for accumulator in flushed_sums(loop):
                emitter.flush(accumulator)
        done = put(f"mul i64 {blocks}, {BLOCK}")
    with emitter.turns(put(f"sub i64 {strips}, {done}")) as strip:
        _strip(emitter, loop, put(f"mul i64 {put(f'add i64 {done}, {strip}')}, {LANES}"), width)
    first, count = put(f"mul i64 {strips}, {LANES}"), put(f"srem i64 {total}, {LANES}")
    _moving_tail(emitter, loop, body, first, count, width)


def _moving_tail(emitter: Iterations, loop: Loop, body: Body, first: str, count: str, width: int) -> None:
    """The last, incomplete strip, of a number of iterations that is known when the loop runs: masked vectors, or one by one."""
    put = emitter.emit.put
    if width > 1 and can_mask_any_number(body, emitter.emit.target):
        for lane in range(0, LANES, width):                # written out: lanes that a number chooses would not be in registers
            left = put(f"sub i64 {count}, {lane}")
            with emitter.turns(put(f"zext i1 {put(f'icmp sgt i64 {left}, 0')} to i64")):
                _lane_vector(emitter, loop, put(f"add i64 {first}, {lane}"), str(lane), width, left)
        return
    with emitter.lanes_in_memory(loop), emitter.turns(count) as number:
        _lane_vector(emitter, loop, put(f"add i64 {first}, {number}"), number, 1)


def _blocks(emitter: Iterations, loop: Loop, strips: int, width: int, sums: list[Accumulator]) -> None:
    """Blocks of BLOCK strips, after each of which the lanes of sums are flushed; the last block may be shorter."""
    emit = emitter.emit
    with emitter.each(loop, -(-strips // BLOCK), BLOCK * LANES) as first:
        rest = emit.put(f"sub nsw i64 {strips * LANES}, {first}")
        count, whole = str(BLOCK), strips % BLOCK == 0
        if not whole:
            left = emit.put(f"lshr i64 {rest}, {LANES.bit_length() - 1}")
            count = emit.intrinsic("llvm.smin.i64", "i64", ("i64", left), ("i64", str(BLOCK)))
        with emitter.turns(count, False) as strip:
            at = emit.put(f"mul nuw nsw i64 {strip}, {LANES}")
            _strip(emitter, loop, emit.put(f"add nuw nsw i64 {first}, {at}"), width)
        if whole:
            for accumulator in sums:
                emitter.flush(accumulator)
            return
        full = emit.put(f"icmp eq i64 {count}, {BLOCK}")
        emit.count += 1
        number = emit.count                        # of the labels
        emit.lines += [f"  br i1 {full}, label %flush{number}, label %on{number}", f"flush{number}:"]
        for accumulator in sums:
            emitter.flush(accumulator)
        emit.lines += [f"  br label %on{number}", f"on{number}:"]


def _strip(emitter: Iterations, loop: Loop, first: str, width: int, count: int = LANES) -> None:
    """The first `count` iterations of the strip that begins with iteration `first`."""
    if width == LANES:
        _lane_vector(emitter, loop, first, "0", width)
        return
    with emitter.turns(str(count // width), False) as number:
        lane = emitter.emit.put(f"mul nuw nsw i64 {number}, {width}") if width > 1 else number
        _lane_vector(emitter, loop, emitter.emit.put(f"add nuw nsw i64 {lane}, {first}"), lane, width)


def _lane_vector(emitter: Iterations, loop: Loop, first: str, lane: str, width: int, active: int | str | None = None) -> None:
    """Iterations first, first + 1, ... as one vector for the lanes from `lane` on; active: how many of them there are, None for all."""
    saved, emitter.lane = emitter.lane, lane
    emitter.vector(loop, first, width, active)
    emitter.lane = saved


def _tail(emitter: Iterations, loop: Loop, body: Body, first: int, count: int, width: int) -> None:
    """The last, incomplete strip: iterations `first` and on, `count` of them."""
    if not count:
        return
    if 1 < width < LANES and count > width:
        whole = count // width * width
        _strip(emitter, loop, str(first), width, whole)
        _rest(emitter, loop, body, first, whole, count - whole, width)
    elif width == 1:
        _strip(emitter, loop, str(first), 1, count)
    else:
        _rest(emitter, loop, body, first, 0, count, width)


def _rest(emitter: Iterations, loop: Loop, body: Body, first: int, lane: int, count: int, width: int) -> None:
    """What is left of the tail: one vector, masked if need be and possible; else vectors whose sizes are powers of two."""
    whole = width if body.expensive else power_of_two(count)
    if whole == count or (count > 1 and can_mask(body, emitter.emit.target)):
        _lane_vector(emitter, loop, str(first + lane), str(lane), whole, None if whole == count else count)
        return
    for piece in halves(lane, count):
        _lane_vector(emitter, loop, str(first + piece.first), str(piece.first), piece.width)
