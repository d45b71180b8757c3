"""The kernel verifier: `verify_kernel` raises InternalError on the first violation, showing the kernel.

The invariants of every kernel:

    check_buffers        buffers are distinct, have distinct names and a known role; statements only use these.
    check_words          words are distinct; only these are read, with their dtypes.
    check_indices        a loop's index runs over 0..extent-1, is none of an enclosing loop; only words and indices of enclosing
                         loops are read; the extent of a loop depends on these only.
    check_lets           a let is made once, and read below it, in its own body or one nested in that.
    check_accumulators   an accumulator is opened by one `reduce`, and fed below it, in its body or one nested in that, with its own
                         combine, and a position exactly for a search; its total is read below where it is fed, and never inside of
                         a vector loop that feeds it (there it is in lanes).
    check_offsets        affine offsets that are not under a lazy select are inside of the buffer, whatever the indices are
                         (bodies of loops without iterations are exempt).
    check_dtypes         stores, fills and accumulations have the dtype of their target; conditions are bool, data-dependent
                         terms and positions i64; the operands of an operation have one dtype.
    check_roles          inputs are never written; every other buffer with elements is.
    check_vector_loops   the body of a vector loop is straight-line code (lets, stores, accumulations), and its stores move with
                         the loop's index or with data.
    check_products       a product loop has one of the forms of `product_loop.py`.

Every check is one walk over the kernel, with the scalars below each statement (`_below`), which are found once for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, lower, upper
from bwcompiler.ir.loop import (
    INPUT,
    OUTPUT,
    SCRATCH,
    UPDATED,
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
from bwcompiler.ir.product_loop import PRODUCT, product_of
from bwcompiler.ir.scalar import OPERATIONS, PREDICATES, Scalar
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.ir.types import BOOL, I64, DType

Below = dict[int, list[tuple[Scalar, bool]]]           # by the id of a statement: its `scalars`


def verify_kernel(kernel: Kernel) -> None:
    """Raise InternalError unless every invariant holds."""
    below = _below(kernel)
    check_buffers(kernel, below)
    check_words(kernel, below)
    check_indices(kernel, below)
    check_lets(kernel, below)
    check_accumulators(kernel, below)
    check_offsets(kernel, below)
    check_dtypes(kernel, below)
    check_roles(kernel)
    check_vector_loops(kernel)
    check_products(kernel)


def fail(kernel: Kernel, message: str) -> NoReturn:
    """Raise, with the kernel."""
    raise InternalError(f"kernel {kernel.name}: {message}\n\n{kernel_to_text(kernel)}")


# ----- walking
def statements(body: list[Statement], loops: tuple[Loop, ...] = ()) -> Iterator[tuple[Statement, tuple[Loop, ...]]]:
    """Every statement in order, with the loops around it."""
    for statement in body:
        yield statement, loops
        if isinstance(statement, Loop):
            yield from statements(statement.body, (*loops, statement))


def roots(statement: Statement) -> list[Scalar]:
    """The scalars that a statement itself evaluates (without those of a loop's body)."""
    if isinstance(statement, Let | Fill):
        return [statement.value]
    if isinstance(statement, Store):
        return [statement.value, *[term for term, _ in statement.offset.terms]]
    if isinstance(statement, Accumulate):
        found = [statement.value] if statement.position is None else [statement.value, statement.position]
        return found if isinstance(statement.target, Accumulator) else [*found, *[t for t, _ in statement.target[1].terms]]
    return []


def scalars(statement: Statement) -> Iterator[tuple[Scalar, bool]]:
    """Every scalar below a statement once, and whether it is only evaluated under a guard."""
    seen: set[int] = set()
    stack = roots(statement)[::-1]
    pending: list[Scalar] = []
    guarded = False
    while stack or pending:
        if not stack:
            stack, guarded = [pending.pop(0)], True
        scalar = stack.pop()
        if id(scalar) in seen:
            continue
        seen.add(id(scalar))
        yield scalar, guarded
        if scalar.op == "select" and scalar.data == "lazy":
            pending += scalar.args[1:]                         # last: scalars that are also read outside of the guard are not guarded
            stack.append(scalar.args[0])
        else:
            stack += scalar.args[::-1]


def _below(kernel: Kernel) -> Below:
    return {id(statement): list(scalars(statement)) for statement, _ in statements(kernel.body)}


def targets(statement: Statement) -> list[tuple[Buffer, Offset | None]]:
    """The buffers that a statement writes, with the offsets (None: the whole buffer)."""
    if isinstance(statement, Store):
        return [(statement.buffer, statement.offset)]
    if isinstance(statement, Fill):
        return [(statement.buffer, None)]
    if isinstance(statement, Accumulate) and isinstance(statement.target, tuple):
        return [statement.target]
    return []


def _indices(extent: Extent) -> list[Index]:
    return [index for index, _ in extent.terms] if isinstance(extent, Affine) else []


# ----- the invariants
def check_buffers(kernel: Kernel, below: Below) -> None:
    declared = set(kernel.buffers)
    if len(declared) != len(kernel.buffers):
        fail(kernel, "a buffer is declared twice")
    if len({buffer.name for buffer in declared}) != len(declared):
        fail(kernel, "two buffers have one name")
    for buffer in kernel.buffers:
        if buffer.role not in (INPUT, OUTPUT, UPDATED, SCRATCH):
            fail(kernel, f"buffer {buffer} has the unknown role {buffer.role!r}")
    for statement, _ in statements(kernel.body):
        used = [buffer for buffer, _ in targets(statement)]
        used += [scalar.data[0] for scalar, _ in below[id(statement)] if scalar.op == "load"]
        for buffer in used:
            if buffer not in declared:
                fail(kernel, f"buffer {buffer} is used but not declared")


def check_words(kernel: Kernel, below: Below) -> None:
    declared = set(kernel.words)
    if len(declared) != len(kernel.words):
        fail(kernel, "a word is declared twice")
    for statement, _ in statements(kernel.body):
        for scalar, _ in below[id(statement)]:
            if scalar.op == "word" and (scalar.data not in declared or scalar.data.dtype is not scalar.dtype):
                fail(kernel, f"word {scalar.data} is read but not declared as {scalar.dtype}")


def check_indices(kernel: Kernel, below: Below) -> None:
    words = {word for word in kernel.words if isinstance(word, Index)}
    for statement, loops in statements(kernel.body):
        scope = words | {loop.index for loop in loops}
        found: list[Index] = []
        if isinstance(statement, Loop):
            if statement.index in scope:
                fail(kernel, f"index {statement.index} is that of an enclosing loop")
            if statement.index.lo != 0 or add_extents(statement.index.hi, 1) != statement.extent:
                index = statement.index
                fail(kernel, f"index {index} has bounds {index.lo}..{index.hi}, its loop runs to {statement.extent}")
            found += _indices(statement.extent)
        for _, offset in targets(statement):
            found += [] if offset is None else _indices(offset.affine)
        for scalar, _ in below[id(statement)]:
            if scalar.op == "load":
                found += _indices(scalar.data[1].affine)
            elif scalar.op == "index":
                found += _indices(scalar.data)
            elif scalar.op == "in_range":
                found += [index for extent in scalar.data for index in _indices(extent)]
        for index in found:
            if index not in scope:
                fail(kernel, f"index {index} is read outside of its loop")


def check_lets(kernel: Kernel, below: Below) -> None:
    made: set[Let] = set()

    def walk(body: list[Statement], visible: set[Let]) -> None:
        visible = set(visible)
        for statement in body:
            for scalar, _ in below[id(statement)]:
                if scalar.op == "local" and scalar.data not in visible:
                    fail(kernel, f"let {scalar.data.name} is read where it is not defined")
            if isinstance(statement, Loop):
                walk(statement.body, visible)
            elif isinstance(statement, Let):
                if statement in made:
                    fail(kernel, f"let {statement.name} is defined twice")
                made.add(statement)
                visible.add(statement)

    walk(kernel.body, set())


def check_accumulators(kernel: Kernel, below: Below) -> None:
    fed: set[Accumulator] = set()
    known: set[Accumulator] = set()

    def feed(statement: Accumulate, accumulator: Accumulator, opened: set[Accumulator]) -> None:
        if accumulator not in opened:
            fail(kernel, f"accumulator {accumulator} is fed before it is opened")
        if statement.combine != accumulator.combine:
            fail(kernel, f"accumulator {accumulator} of {accumulator.combine} is fed with {statement.combine}")
        if (statement.position is not None) != accumulator.combine.startswith("arg"):
            fail(kernel, f"accumulator {accumulator}: a position goes with argmax and argmin, and only with them")
        fed.add(accumulator)

    def read(accumulator: Accumulator, opened: set[Accumulator], lanes: set[Accumulator]) -> None:
        if accumulator not in opened or accumulator not in fed:
            fail(kernel, f"the total of {accumulator} is read before it is known")
        if accumulator in lanes:
            fail(kernel, f"the total of {accumulator} is read in a vector loop that feeds it")

    def walk(body: list[Statement], opened: set[Accumulator], lanes: set[Accumulator]) -> None:
        opened = set(opened)
        for statement in body:
            for scalar, _ in below[id(statement)]:
                if scalar.op in ("total", "found"):
                    read(scalar.data, opened, lanes)
            if isinstance(statement, Loop):
                walk(statement.body, opened, lanes | _fed_in_lanes(statement))
            elif isinstance(statement, Reduce):
                if statement.accumulator in known:
                    fail(kernel, f"accumulator {statement.accumulator} is opened twice")
                known.add(statement.accumulator)
                opened.add(statement.accumulator)
            elif isinstance(statement, Accumulate) and isinstance(statement.target, Accumulator):
                feed(statement, statement.target, opened)

    walk(kernel.body, set(), set())


def _fed_in_lanes(loop: Loop) -> set[Accumulator]:
    if loop.kind != "vector":
        return set()
    return {s.target for s in loop.body if isinstance(s, Accumulate) and isinstance(s.target, Accumulator)}


def check_offsets(kernel: Kernel, below: Below) -> None:
    for statement, loops in statements(kernel.body):
        if any(upper(loop.extent) <= 0 for loop in loops):
            continue
        places = [(buffer, offset) for buffer, offset in targets(statement) if offset is not None]
        places += [scalar.data for scalar, guarded in below[id(statement)] if scalar.op == "load" and not guarded]
        for buffer, offset in places:
            if not offset.terms and not (lower(offset.affine) >= 0 and upper(offset.affine) < buffer.size):
                low, high = lower(offset.affine), upper(offset.affine)
                fail(kernel, f"offset {offset.affine} into {buffer} runs over {low}..{high}, the buffer has {buffer.size} elements")


def check_dtypes(kernel: Kernel, below: Below) -> None:
    for statement, _ in statements(kernel.body):
        if isinstance(statement, Store | Fill):
            _require(kernel, statement.value, statement.buffer.dtype, f"what is written into {statement.buffer}")
        elif isinstance(statement, Accumulate):
            target = statement.target if isinstance(statement.target, Accumulator) else statement.target[0]
            _require(kernel, statement.value, target.dtype, f"what is combined into {target}")
            if statement.position is not None:
                _require(kernel, statement.position, I64, f"the position for {target}")
        for _, offset in targets(statement):
            for term, _ in offset.terms if offset is not None else ():
                _require(kernel, term, I64, "an offset term")
        for scalar, _ in below[id(statement)]:
            _check_scalar(kernel, scalar)


def _check_scalar(kernel: Kernel, scalar: Scalar) -> None:
    if scalar.op == "load":
        buffer, offset = scalar.data
        _require(kernel, scalar, buffer.dtype, f"an element of {buffer}")
        for term, _ in offset.terms:
            _require(kernel, term, I64, "an offset term")
    elif scalar.op == "select":
        condition, x, y = scalar.args
        _require(kernel, condition, BOOL, "a condition")
        _require(kernel, x, scalar.dtype, "a choice of select")
        _require(kernel, y, scalar.dtype, "a choice of select")
    elif scalar.op in OPERATIONS:
        for arg in scalar.args:
            _require(kernel, arg, scalar.args[0].dtype, f"an operand of {scalar.op}")
        if scalar.op not in PREDICATES:
            _require(kernel, scalar, scalar.args[0].dtype, scalar.op)


def _require(kernel: Kernel, scalar: Scalar, dtype: DType, what: str) -> None:
    if scalar.dtype is not dtype:
        fail(kernel, f"{what} is {scalar.dtype}, not {dtype}")


def check_roles(kernel: Kernel) -> None:
    written: set[Buffer] = set()
    for statement, _ in statements(kernel.body):
        for buffer, _ in targets(statement):
            if buffer.role == INPUT:
                fail(kernel, f"input {buffer} is written")
            written.add(buffer)
    for buffer in kernel.buffers:
        if buffer.role != INPUT and buffer.size and buffer not in written:
            fail(kernel, f"{buffer.role} buffer {buffer} is never written")


def check_vector_loops(kernel: Kernel) -> None:
    for loop, _ in statements(kernel.body):
        if not isinstance(loop, Loop) or loop.kind in ("serial", PRODUCT):
            continue
        if loop.kind != "vector":
            fail(kernel, f"the loop over {loop.index} is of unknown kind {loop.kind!r}")
        for statement in loop.body:
            if not isinstance(statement, Let | Store | Accumulate):
                fail(kernel, f"the vector loop over {loop.index} has a {type(statement).__name__} in its body")
            if isinstance(statement, Store) and not _moves(statement, loop):
                fail(kernel, f"all iterations of the vector loop over {loop.index} store into one element of {statement.buffer}")


def _moves(store: Store, loop: Loop) -> bool:
    """Whether iterations of the loop store into different elements, or there is only one (or none)."""
    if upper(loop.extent) <= 1 or store.buffer.size <= 1:
        return True
    return bool(store.offset.terms) or loop.index in _indices(store.offset.affine)


def check_products(kernel: Kernel) -> None:
    for loop, _ in statements(kernel.body):
        if isinstance(loop, Loop) and loop.kind == PRODUCT and product_of(loop) is None:
            fail(kernel, f"the loop over {loop.index} is not a product of two matrices")
