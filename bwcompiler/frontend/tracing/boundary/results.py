"""Results of traced functions: the value of an array or a number, or the reason why there is none.

Results of `bw.jit` functions need not be arrays of known shape: selections by masks, strings and types, lists whose number of elements is
data, one of several objects.  They are nodes in the tree of results; from the arrays of a node (all elements and the mask) each call
makes what the function returned.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.data_slices import DataSlice
from bwcompiler.frontend.tracing.indexing.grids import Grid
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, SizedByData
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.contracts.call_signature import ResultKind
from bwcompiler.ir.op import Value

_FIXED = (str, bytes, type, np.dtype)              # of which there is one for all calls of a program


class ResultNode:
    """A node of the tree of results: arrays, and what each call makes of them, make(fixed, parts); `fixed` is the same in all calls."""

    __slots__ = ("fixed", "make", "parts")

    def __init__(self, make: Callable[[Any, Any], Any], fixed: Any, parts: tuple[Any, ...]) -> None:
        self.make = make
        self.fixed = fixed
        self.parts = parts


def _same(value: Any, _: Any) -> Any:
    return value


def _taken(lead: int, parts: Any) -> Any:
    """What a mask selects: of all elements and the mask, whose axes stand behind `lead` others."""
    whole, mask = parts
    if not isinstance(whole, np.ndarray) or not isinstance(mask, np.ndarray):
        return ResultNode(_taken, lead, parts)        # numbers of results in their place
    return np.ascontiguousarray(whole[(slice(None),) * lead + (mask,)])


def _crossed(axes: tuple[int, ...], parts: Any) -> Any:
    """What masks select along several axes."""
    if not all(isinstance(part, np.ndarray) for part in parts):
        return ResultNode(_crossed, axes, parts)      # numbers of results in their place
    whole, *masks = parts
    for axis, mask in zip(axes, masks, strict=True):
        whole = np.compress(mask, whole, axis)
    return np.ascontiguousarray(whole)


def chosen(which: Any, value: Any, options: Any) -> ResultNode:
    """One of `options.things`, by the number of its place; with a negative one, the value."""
    return ResultNode(_chosen, options, (which, value))


def _chosen(options: Any, parts: Any) -> Any:
    which, value = parts
    if not isinstance(which, np.integer):
        return chosen(which, value, options)           # numbers of results in their place
    return value if which < 0 else options.things[which]


def one_of_two(test: Any, one: Any, other: Any) -> ResultNode:
    """One of two values, as a truth value says."""
    return ResultNode(_one_of_two, None, (test, one, other))


def _one_of_two(_: None, parts: Any) -> Any:
    test, one, other = parts
    if not isinstance(test, np.bool_ | np.ndarray):
        return one_of_two(test, one, other)            # numbers of results in their place
    return one if test else other


def gapped(items: Iterable[Any]) -> ResultNode:
    """A list of which `element`s may not be there."""
    return ResultNode(_those_there, list, tuple(items))


def element(present: Any, value: Any) -> ResultNode:
    """An element of such a list, with whether it is there."""
    return ResultNode(_element, None, (present, value))


def _element(_: None, parts: Any) -> ResultNode:
    return element(*parts)


def container(kind: tuple[Any, Any], items: Any) -> ResultNode:
    """A list, deque or dictionary of elements that may not be there; with what a `defaultdict` makes, or the `maxlen` of a `deque`."""
    return ResultNode(_container, kind, (items,))


def _container(kind: tuple[Any, Any], parts: Any) -> Any:
    items, made, more = parts[0], *kind
    if type(items) is ResultNode:
        return container(kind, items)
    if not issubclass(made, dict):
        return made(items) if more is None else made(items, more)
    found = {tree.map(_as_number, key): value for key, value in items}
    return made(more, found) if more is not None else made(found)


def _as_number(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x


def _is_element(item: Any) -> bool:
    return type(item) is ResultNode and item.make is _element


def _those_there(kind: type, items: Any) -> Any:
    if any(_is_element(item) and not isinstance(item.parts[0], bool | np.bool_) for item in items):
        return gapped(items)
    return kind([item.parts[1] if _is_element(item) else item for item in items if not _is_element(item) or item.parts[0]])


def _register() -> None:
    tree.register_once(ResultNode, lambda node: (node.parts, (node.make, node.fixed)), lambda how, parts: how[0](how[1], parts))


def as_nodes(result: Any) -> Any:
    """The result of a function with such nodes in the place of what cannot be an output."""
    _register()
    result = HANDLERS["opened_result"](result)
    leaves, structure = tree.flatten(result)
    if not any(isinstance(leaf, (SizedByData, *_FIXED)) for leaf in leaves):
        return result
    return tree.unflatten(structure, [_node(leaf) for leaf in leaves])


def _node(leaf: Any) -> Any:
    if isinstance(leaf, Selection):
        return ResultNode(_taken, leaf.lead, (leaf.array, leaf.where))
    if isinstance(leaf, Grid):
        return ResultNode(_crossed, tuple(leaf.lines), (leaf.array, *[line.where for line in leaf.lines.values()]))
    if isinstance(leaf, str) and ("<traced " in leaf or "\0" in leaf):
        raise TracerError(at(current_source(), f"the result holds {leaf!r}, a text of traced numbers, which are not known while tracing\n"
                             "  hint: return the numbers, and make the text of the result"))
    return ResultNode(_same, leaf, ()) if isinstance(leaf, _FIXED) else leaf


# ----- results that are arrays and numbers
def _of_unknown_length(path: str, leaf: SizedByData) -> TracerError:
    """Why what data selects is no result, and what could be."""
    if isinstance(leaf, DataSlice):
        what = "a slice with a traced bound"
        hint = "return x[start + np.arange(n)], where n is the number of elements, or what is computed of it: x[a:b].sum(), max(), [-1]"
    else:
        what = "x[mask] with a traced mask, or an array of a list that grew as data decided"
        hint = ("return np.where(mask, x, 0), or what is computed of it: x[mask].sum(), len(kept), kept[-1]; of a loop whose end is data "
                "an array of fixed size that it writes into, and the count")
    return TracerError(at(current_source(), f"{path} is {what}: the number of elements is not known while tracing\n  hint: {hint}"))


def result_value(leaf: Any, position: int, output_tree: tree.TreeDef) -> Value:
    """The value of a result that is an array or a number."""
    if isinstance(leaf, Tracer):
        return value_of(leaf)
    if not isinstance(leaf, bool | int | float | complex | np.generic | np.ndarray):
        path = tree.treedef_paths(output_tree, "result")[position]
        if isinstance(leaf, SizedByData):
            raise _of_unknown_length(path, leaf)
        if isinstance(leaf, Coroutine):
            leaf.close()                       # or Python warns that nobody waited for it
        hint = ("return its array, .to_numpy(), and wrap the result of the call" if hasattr(leaf, "to_numpy") else
                "return it from a function around the compiled one" if isinstance(leaf, str | bytes | type | np.dtype) else
                "return sorted() or a list of it" if getattr(type(leaf), "is_bounded", False) else
                "return a list of what it yields" if isinstance(leaf, Generator) else
                "compile the functions that it awaits, which compute, and not the one that waits" if isinstance(leaf, Coroutine) else
                "float() of it: derivatives are of machine numbers" if isinstance(leaf, Number) else
                f"make {type(leaf).__name__} a dataclass, or register it (bw.tree.register_pytree_node)")
        raise TracerError(at(current_source(), f"{path} is of type {type(leaf).__name__}; a traced function returns arrays, "
                             f"numbers and containers of them\n  hint: {hint}"))
    return value_as(leaf)


def result_kind(leaf: Any) -> ResultKind:
    """What a call gives for a result."""
    if isinstance(leaf, Tracer):
        return "array" if leaf._type.shape or leaf._storage.writable else "scalar"
    return "array" if isinstance(leaf, np.ndarray) else "scalar"


# ----- checks
def checked(checks: Sequence[Value], outputs: tuple[Value, ...], mutated: dict[int, Value], assigned: dict[int, Value]) -> tuple[
        tuple[Value, ...], dict[int, Value], dict[int, Value]]:
    """The results of a region, the first of which waits for its checks."""
    if outputs:
        return (ops.barrier(outputs[0], *checks), *outputs[1:]), mutated, assigned
    written = mutated or assigned
    for number in list(written)[:1]:
        written[number] = ops.barrier(written[number], *checks)
    return outputs, mutated, assigned


def checked_result(result: Any, token: Any) -> ResultNode:
    """A result without arrays and numbers, of a function that checks something: a number that is there when that is done goes with it."""
    _register()
    return ResultNode(_alone, None, (result, token))


def never_empty(result: Any) -> Any:
    """The result, with a number where it has none, as that of a function that checks something has."""
    return result if tree.leaves(result) else checked_result(result, np.float64(0.0))


def _alone(_: None, parts: Any) -> Any:
    result, token = parts
    if isinstance(token, Tracer):                      # of a call that is part of another function, which waits for it
        open_region().checks.append(value_of(token))
    elif not isinstance(token, np.generic | np.ndarray):
        return checked_result(result, token)           # numbers of results in their place
    return result
