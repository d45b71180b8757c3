"""What happens when Python asks a handle for its number: integer arguments are obtained by tracing again, and floats if the function is
refused otherwise (`int(end / step)` as a size); everything else is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import BwError, EscapedTracerError, TracerBoolError, TracerIndexError, at, located
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import Region, StaticDemand, Storage, active_region, escaped_message, open_region
from bwcompiler.ir.extent import mentions_index
from bwcompiler.ir.graph import Graph, cut, live_values
from bwcompiler.ir.op import Value
from bwcompiler.ir.semantics.content_hash import content_hash
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.partial_interpreter import UNKNOWN, known_outputs

FEW, MANY = 20_000, 1_000_000  # operations that numbers may take, which are asked for often (0.05 s), and the structure of matrices

_FEW_BYTES = 100_000
_FLAT = (ops.floor, ops.ceil, ops.rint, ops.trunc, ops.sign, ops.stop_gradient)


def refuse(tracer: Any, kind: type[BwError], message: str) -> NoReturn:
    """Raise what Python asked for and cannot have; NumPy may hide the error behind one of its own, so the region keeps it."""
    region = active_region()
    if region is None:
        raise EscapedTracerError(at(current_source(), escaped_message(tracer._storage)))
    error = located(kind(f"{message}\n  the value: {tracer!r}"), current_source(region.outer))
    region.refusal = error
    raise error


def number_of(tracer: Any, value: Value, kind: type[BwError], advice: Callable[[], str], is_operand: bool = False) -> Any:
    """The number behind a handle that depends on nothing, or on integer arguments alone, which are then asked for.

    Refused for others.  is_operand: the value itself stays an operand beside its number, so that it has a derivative.
    """
    region = open_region()
    found = _arguments_of(region, value, floats=kind is not TracerBoolError)   # a test may turn out otherwise for each float
    if found is not None and (is_operand or not _has_slope(region, value)):
        return _ask(region, tracer, value, found, kind, advice)
    number = constant_number(value) if kind is TracerIndexError and found is None else None
    number = HANDLERS["assumed_number"](value) if number is None else number
    return refuse(tracer, kind, advice()) if number is None else number


def may_be_known(value: Value) -> bool:
    """Whether a value depends on nothing, or on integer arguments alone."""
    return _arguments_of(open_region(), value) is not None


def may_become_known(tracer: Any) -> bool:
    """Whether a handle is a number that is computed of integer arguments alone, of which nobody needs to know it yet."""
    storage = tracer._storage
    return not (tracer._chain or tracer._type.shape) and _arguments_of(storage.region, storage.value, floats=False) is not None


def ask_whose_truth(tracer: Any) -> None:
    """A program is to tell True from np.True_: trace again with the number of a truth value that is made of integer arguments alone.

    Those that data decide are NumPy's.
    """
    if tracer._type.dtype.kind == "b" and may_become_known(tracer):
        bool(tracer)


def number_if_known(tracer: Any, value: Value, advice: Callable[[], str]) -> Any:
    """Likewise, but the handle itself for others."""
    region = open_region()
    found = _arguments_of(region, value)
    if found is None or _has_slope(region, value):
        return tracer
    return _ask(region, tracer, value, found, TracerIndexError, advice)


def _ask(innermost: Region, tracer: Any, value: Value, found: tuple[Region, list[int]], kind: type[BwError],
         advice: Callable[[], str]) -> Any:
    """The number of a value that is computed from these arguments of a region."""
    asked, numbers = found
    if not numbers:
        return _known(innermost, value)[()]
    _demand(innermost, asked, numbers, kind(f"{advice()}\n  the value: {tracer!r}"))


def _demand(innermost: Region, asked: Region, numbers: list[int], refusal: BwError) -> NoReturn:
    """Trace again with the numbers of these arguments of a region."""
    source = current_source(innermost.outer)
    demand = StaticDemand(asked, numbers, source, located(refusal, source))
    region: Region | None = innermost
    while region is not None and region is not asked.parent:
        region.demand = demand
        region = region.parent
    raise demand


def ask_for_integers(value: Value) -> None:
    """Trace again with the integer arguments that a value is computed from, whatever else it is computed from; only where the function
    would be refused otherwise."""
    region = open_region()
    found = _integers_of(region, value)
    if found is not None:
        _demand(region, *found, TracerIndexError("a size depends on this number"))


def _integers_of(region: Region, value: Value) -> tuple[Region, list[int]] | None:
    """The region whose arguments these are, or one around it, and their positions."""
    inputs = _inputs_of(value, live_values(region.record.values, (value,)))
    places = [region.argument_inputs.index(one) for one in inputs if one in region.argument_inputs]
    numbers = [place for place in places if region.arguments[place].demandable and region.arguments[place].type.dtype.kind in "biu"]
    if numbers or region.parent is None:
        return (region, sorted(numbers)) if numbers else None
    parent = region.parent
    outside = [_integers_of(parent, parent.read(region.lifted[region.lifted_inputs.index(one)])) for one in inputs
               if one in region.lifted_inputs]
    return next((one for one in outside if one is not None), None)


def comes_of_integer_arrays(value: Value) -> bool:
    """Whether a value is computed of what arrays of integers or booleans hold, which are arguments, and of nothing else that varies.

    Where the function is refused, their contents are compiled in (`boundary/known_arrays.py`).
    """
    found: set[bool] = set()
    pending = [(open_region(), value)]
    while pending:
        region, one = pending.pop()
        live = live_values(region.record.values, (one,))
        if any(part.op is ops.index_value for part in live):
            return False
        for source in _inputs_of(one, live):
            if source in region.argument_inputs and region.parent is None:         # those of others are carried
                kind = region.arguments[region.argument_inputs.index(source)].type
                found.add(kind.dtype.kind in "biu" and bool(kind.shape))
            elif source in region.lifted_inputs and region.parent is not None:
                pending.append((region.parent, region.parent.read(region.lifted[region.lifted_inputs.index(source)])))
            elif source not in region.capture_inputs:
                return False
    return found == {True}


def _has_slope(region: Region, value: Value) -> bool:
    """Whether it changes smoothly with a float that is an operand, though its number is known: that number had no derivative."""
    seen, stack = {value}, [value]
    while stack:
        found = stack.pop()
        if found.dtype.kind not in "fc" or found.op in _FLAT:
            continue
        if found in region.numbers:
            return True
        if found in region.lifted_inputs:
            parent, storage = region.parent, region.lifted[region.lifted_inputs.index(found)]
            if parent is not None and _has_slope(parent, parent.read(storage)):
                return True
        stack += [operand for operand in found.operands if operand not in seen]
        seen.update(found.operands)
    return False


def _known(region: Region, value: Value) -> Any:
    """What a value is that depends on nothing but numbers of enclosing regions that do so, too."""
    needed = {operand for one in live_values(region.record.values, (value,)) for operand in one.operands} | {value}
    lifted = [number for number, given in enumerate(region.lifted_inputs) if given in needed]
    given = [given for given in region.numbers if given in needed]
    parent, numbers = region.parent, [region.numbers[one] for one in given]
    for number in lifted:
        assert parent is not None
        numbers.append(_known(parent, parent.read(region.lifted[number])))
    inputs = [*given, *[region.lifted_inputs[number] for number in lifted]]
    return interpret(cut("known", inputs, region.record.values, (value,)), numbers)[0]


def constant_number(value: Value, is_size: bool = False) -> Any:
    """The number of a value that is computed from concrete arrays alone (numbers of equations, by a table of what is held fixed), or from
    arguments that are such arrays, where the function is known to be refused without (`known_arrays`); or by loops that count.

    None for others.  The program would compute it, too; it is asked for only where the function would be refused.
    """
    region = open_region()
    if region.policy is None:
        return None
    found = _constant(region, value, is_size)
    found, = constant_arrays([value], FEW) if found is None else [found]
    if found is None and is_size:
        found = HANDLERS["assumed_number"](value)
        if found is not None:
            return found
        ask_for_integers(value)
    return None if found is None else found[()]


def constant_arrays(values: Sequence[Value], most: int = MANY) -> list[Any]:
    """The arrays of values that depend on no input of their region, nor on loops around; None for others, and for those that take more
    than `most` operations.

    They may be made in a loop that makes others of data: places in a matrix, beside what is there.
    """
    region = open_region()
    inputs = list(dict.fromkeys([one for value in values for one in _inputs_of(value, live_values(region.record.values, (value,)))]))
    found = known_outputs(cut("constant", inputs, region.record.values, values), [UNKNOWN] * len(inputs), most)
    return [None if one is UNKNOWN else one for one in found]


def _inputs_of(value: Value, made: Sequence[Value]) -> list[Value]:
    """The inputs that a value is computed from, by way of what was made."""
    return list(dict.fromkeys([part for one in (*made, value) for part in (*one.operands, one) if part.op.kind == "input"]))


def _constant(region: Region, value: Value, is_size: bool) -> Any:
    """The same of any value of a region."""
    values = live_values(region.record.values, (value,))
    inputs = _inputs_of(value, values)
    arrays = [_contents(region, one, is_size) for one in inputs]
    if any(array is None for array in arrays) or any(one.op.kind == "library" or mentions_index(one.attrs) for one in (*values, value)):
        return None
    try:
        found = _followed(region, cut("constant", inputs, region.record.values, (value,)), arrays)
    except KeyError:                                           # a loop in it runs up to the index of one around
        return None
    if found is UNKNOWN:                                       # after too many iterations of loops
        return None
    HANDLERS["read_contents"](*arrays)
    return found


def _followed(region: Region, graph: Graph, arrays: Sequence[Any]) -> Any:
    """The output of a graph; once for all attempts to trace the function, as it may have long loops."""
    policy = region.policy
    if policy is None or sum([array.nbytes for array in arrays]) > _FEW_BYTES:
        return known_outputs(graph, arrays, MANY)[0]
    key = content_hash(graph), *[(array.dtype.str, array.shape, array.tobytes()) for array in arrays]
    if key not in policy.followed:
        policy.followed[key], = known_outputs(graph, arrays, MANY)
    return policy.followed[key]


def _contents(region: Region, value: Value, is_size: bool) -> Any:
    """The array that an input of a region is; None of one that is data.

    It is noted where a size is made of an array of floats, which can be had.
    """
    found = region.array_of(value)
    if found is None and value in region.lifted_inputs and region.parent is not None:
        storage = region.lifted[region.lifted_inputs.index(value)]
        outside = region.parent.read(storage)
        found = _constant(region.parent, outside, is_size)
        array = region.parent.array_of(outside)                # one that nobody writes to; to others the body of a loop may yet write
        return None if storage.writable and (array is None or array.flags.writeable) else found
    known = None if region.policy is None else region.policy.known
    place = next((place for place, one in enumerate(region.argument_inputs[:len(region.passed)]) if one is value), None)
    if found is not None or place is None or known is None:
        return found
    passed = region.passed[place]
    if isinstance(passed, np.ndarray):
        if region.parent is not None:              # one that is no argument of the whole, or is known
            return passed
        if is_size and passed.dtype.kind == "f":
            known.arrays_asked[id(passed)] = passed
        return None
    given = getattr(passed, "_storage", None)
    is_whole = given is not None and given.region is region.parent and not passed._chain
    return _constant(given.region, given.value, is_size) if given is not None and is_whole else None


def _note_float(region: Region, argument: Storage) -> None:
    """A number that a float decides is asked for: it can be had if the function is refused without it."""
    if region.policy is not None and region.policy.known is not None and not argument.writable and argument.type.dtype.kind == "f":
        region.policy.known.floats_asked = True


def _arguments_of(region: Region, value: Value, floats: bool = True) -> tuple[Region, list[int]] | None:
    """The arguments that may be asked for and that a value is computed from, and the region whose they are; None: from others too."""
    numbers, lifted = set(), []
    seen, stack = {value}, [value]
    while stack:
        found = stack.pop()
        if found in region.numbers:
            continue
        if found in region.argument_inputs:
            number = region.argument_inputs.index(found)
            argument = region.arguments[number]
            if not argument.demandable or (argument.type.dtype.kind == "f" and not floats):
                if floats:
                    _note_float(region, argument)
                return None
            numbers.add(number)
        elif found in region.lifted_inputs:
            lifted.append(region.lifted[region.lifted_inputs.index(found)])
        elif found.op.kind in ("input", "region", "library") or mentions_index(found.attrs):
            return None
        stack += [operand for operand in found.operands if operand not in seen]
        seen.update(found.operands)
    if not lifted or numbers:
        return None if lifted else (region, sorted(numbers))
    parent = region.parent
    if parent is None or len(lifted) > 1:
        return None
    outside = _arguments_of(parent, parent.read(lifted[0]), floats)
    if outside is not None and not outside[1] and lifted[0].writable:      # the body of a loop may yet write to it
        return None
    return outside
