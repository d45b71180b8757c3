"""The definition of kernels: a slow, simple interpreter over NumPy arrays.  Start reading at `run_kernel`.

Reductions have the tree of `reduction_tree.py`, so that results are bit-identical to native code wherever the scalar
operations are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Index, evaluate, upper
from bwcompiler.ir.loop import (
    Accumulate,
    Accumulator,
    Buffer,
    Fill,
    Kernel,
    Let,
    Loop,
    Offset,
    Reduce,
    Statement,
    Store,
)
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ir.scalar import OPERATIONS, Scalar, Word
from bwcompiler.ir.semantics.reduction_tree import BLOCK, LANES, flushed_sums, in_lanes, last_feeds, total_dtype

Array = np.ndarray[Any, Any]


def run_kernel(kernel: Kernel, arrays: Sequence[Array], words: Sequence[Any] = ()) -> None:
    """Run a kernel on one C-contiguous array per buffer (scratch too), in the order of its buffers, and one number per word."""
    if len(arrays) != len(kernel.buffers):
        raise InternalError(f"kernel {kernel.name} has {len(kernel.buffers)} buffers, got {len(arrays)} arrays")
    memory: dict[Buffer, Array] = {}
    for buffer, array in zip(kernel.buffers, arrays, strict=True):
        if array.dtype != buffer.dtype.numpy or array.size != buffer.size or not array.flags.c_contiguous:
            raise InternalError(f"kernel {kernel.name}: buffer {buffer} is {buffer.dtype}{list(buffer.shape)}, "
                                f"got {array.dtype}{list(array.shape)}, strides {array.strides}")
        memory[buffer] = array.reshape(-1)
    with np.errstate(all="ignore"):
        _Machine(kernel, memory, dict(zip(kernel.words, words, strict=True))).body(kernel.body)


class _Reduction:
    """An open accumulator.  lanes: partial results; totals: of blocks; position: of the best element of a search, -1 for none."""

    def __init__(self, accumulator: Accumulator) -> None:
        self.dtype = accumulator.dtype
        self.identity = accumulator.dtype.numpy.type(accumulator.start)
        self.value: Any = self.identity
        self.position = -1
        self.lanes: list[Any] = [self.identity] * LANES
        self.totals: list[Any] = []

    def open_totals(self) -> None:
        self.totals = self.totals or [total_dtype(self.dtype).numpy.type(0)] * LANES

    def flush(self) -> None:
        self.open_totals()
        wide = total_dtype(self.dtype).numpy.type
        self.totals = [total + wide(lane) for total, lane in zip(self.totals, self.lanes, strict=True)]
        self.lanes = [self.identity] * LANES

    def combine_lanes(self, combine: str) -> None:
        if self.totals:
            self.flush()
        lanes = self.totals or self.lanes
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [OPERATIONS[combine](low, high) for low, high in zip(lanes[:half], lanes[half:], strict=True)]
        self.value = type(self.identity)(lanes[0])


class _Machine:
    def __init__(self, kernel: Kernel, memory: dict[Buffer, Array], words: dict[Index | Word, Any]) -> None:
        self.memory = memory
        self.words = words
        self.indices = {word: int(number) for word, number in words.items() if isinstance(word, Index)}
        self.lets: dict[Let, Any] = {}
        self.open: dict[Accumulator, _Reduction] = {}
        self.lane: int | None = None
        self.in_lanes = in_lanes(kernel.body)
        self.last: dict[int, dict[int, list[Accumulator]]] = {}         # `last_feeds` of each body

    # ----- statements
    def body(self, body: list[Statement]) -> None:
        last = self.last.get(id(body))
        if last is None:
            last = self.last[id(body)] = last_feeds(body, self.in_lanes)
        for number, statement in enumerate(body):
            self.statement(statement)
            for accumulator in last.get(number, ()):
                self.open[accumulator].combine_lanes(accumulator.combine)

    def statement(self, statement: Statement) -> None:
        if isinstance(statement, Let):
            self.lets[statement] = self.scalar(statement.value)
        elif isinstance(statement, Store):
            self.memory[statement.buffer][self.offset(statement.buffer, statement.offset)] = self.scalar(statement.value)
        elif isinstance(statement, Fill):
            self.memory[statement.buffer][:] = self.scalar(statement.value)
        elif isinstance(statement, Reduce):
            self.open[statement.accumulator] = _Reduction(statement.accumulator)
        elif isinstance(statement, Accumulate):
            self.accumulate(statement)
        else:
            self.loop(statement)

    def loop(self, loop: Loop) -> None:
        extent = evaluate(loop.extent, self.indices)
        fed = [s.target for s in loop.body if isinstance(s, Accumulate) and s.target in self.in_lanes]
        sums = flushed_sums(loop) if fed else []
        saved = self.lane
        if upper(loop.extent) >= LANES * BLOCK:
            for accumulator in sums:
                self.open[accumulator].open_totals()
        for number in range(extent):
            self.indices[loop.index] = number
            if fed:
                self.lane = number % LANES
            self.body(loop.body)
            if (number + 1) % (LANES * BLOCK) == 0:
                for accumulator in sums:
                    self.open[accumulator].flush()
        self.lane = saved
        self.indices.pop(loop.index, None)

    def accumulate(self, statement: Accumulate) -> None:
        value, target = self.scalar(statement.value), statement.target
        if isinstance(target, tuple):
            buffer, offset = target
            at = self.offset(buffer, offset)
            self.memory[buffer][at] = OPERATIONS[statement.combine](self.memory[buffer][at], value)
            return
        reduction = self.open[target]
        if statement.position is not None:
            self.search(reduction, target.combine, value, int(self.scalar(statement.position)))
        elif self.lane is not None and target in self.in_lanes:
            reduction.lanes[self.lane] = OPERATIONS[statement.combine](reduction.lanes[self.lane], value)
        else:
            reduction.value = OPERATIONS[statement.combine](reduction.value, value)

    def search(self, reduction: _Reduction, combine: str, value: Any, position: int) -> None:
        """Keep the first best element; a nan is better than any number, and the first nan stays."""
        best = reduction.value
        better = value > best if combine == "argmax" else value < best
        if reduction.position < 0 or (best == best and (better or value != value)):
            reduction.value, reduction.position = value, position

    # ----- scalars
    def offset(self, buffer: Buffer, offset: Offset) -> int:
        at = evaluate(offset.affine, self.indices)
        for term, stride in offset.terms:
            at += int(self.scalar(term)) * stride
        if not 0 <= at < buffer.size:
            raise InternalError(f"offset {at} is outside of {buffer}, which has {buffer.size} elements")
        return at

    def scalar(self, scalar: Scalar) -> Any:
        """The value of a scalar, as a NumPy scalar of its dtype."""
        op, data, type_ = scalar.op, scalar.data, scalar.dtype.numpy.type
        if op == "const":
            return type_(data)
        if op == "word":
            return type_(self.words[data])
        if op == "local":
            return self.lets[data]
        if op == "load":
            return self.memory[data[0]][self.offset(*data)]
        if op == "total":
            return self.open[data].value
        if op == "found":
            return type_(self.open[data].position)
        if op == "index":
            return type_(evaluate(data, self.indices))
        if op == "in_range":
            position, low, high = [evaluate(extent, self.indices) for extent in data]
            return type_(low <= position < high)
        if op == "select" and data == "lazy":
            return self.scalar(scalar.args[1] if self.scalar(scalar.args[0]) else scalar.args[2])
        args = [self.scalar(arg) for arg in scalar.args]
        if op == "select":
            return args[1] if args[0] else args[2]
        if op == "cast":
            return args[0].astype(scalar.dtype.numpy)
        function = OPERATIONS.get(op) or REGISTRY[op].reference
        return type_(function(*args))
