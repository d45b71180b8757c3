"""Backward calls for the native entry: their keyword arguments as trees of leaves, and the trees of their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import tree
from bwcompiler.api.programs.arguments.forms import argument_kinds, signature_tree
from bwcompiler.api.programs.backward.requests import Request
from bwcompiler.api.programs.bound_graph import BoundGraph
from bwcompiler.ir.contracts.call_signature import CallSignature, Container, Leaf, Static, Tree, static_indices
from bwcompiler.ir.op import Value
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED


class BackwardCall(NamedTuple):
    """The keyword arguments of a backward call."""

    grad_outputs: Any = None
    wrt: Any = None
    into: Any = None
    scale: Any = None

    @staticmethod
    def of(given: dict[str, Any], name: str) -> BackwardCall:
        """The given keyword arguments; TypeError for unknown ones, like Python's."""
        unknown = [key for key in given if key not in BackwardCall._fields]
        if unknown:
            raise TypeError(f"{name} got an unexpected keyword argument {unknown[0]!r}; it takes {', '.join(BackwardCall._fields)}")
        return BackwardCall(**given)

    def wrt_numbers(self) -> tuple[int, ...]:
        """The positions in `wrt`, which the native entry compares."""
        return () if self.wrt is None else (self.wrt,) if isinstance(self.wrt, int) else tuple(self.wrt)


def backward_signature(bound: BoundGraph, request: Request, arguments: tuple[Tree, ...], leaves: Sequence[Any], given: dict[str, Any],
                       argument_numbers: Sequence[Any], result_numbers: Any, positional: bool = False) -> CallSignature | None:
    """The signature of calls like the one with these keywords; None if the native entry cannot take them.

    arguments         trees of the positional arguments, whose leaves are `leaves`; `positional`: the seed is one more.
    argument_numbers  per argument, its tree of leaf numbers; result_numbers: the tree of output numbers.
    """
    seeds = sum(seed == INPUT_SEED for seed in request.seeds)
    first = len(leaves) + seeds                    # number of the first leaf after the seeds
    statics = sum(len(static_indices(found)) for found in arguments)
    found: dict[str, Tree | None] = {}
    objects: list[Any] = [*leaves, *[None] * seeds, *[given.get("scale")] * request.scaled, *[None] * len(request.into)]
    for name, value in given.items():
        if name == "wrt":
            found[name] = _wrt_tree(value, statics)
        elif name == "scale":
            found[name] = Container("none") if value is None else Leaf(first)
        else:
            start, count = (len(leaves), seeds) if name == "grad_outputs" else (first + request.scaled, len(request.into))
            found[name] = _numbered(value, start, count, objects)
    kinds = argument_kinds(objects)
    trees = [one for one in found.values() if one is not None]
    result = signature_tree(_results(request, argument_numbers, result_numbers))
    if kinds is None or len(trees) != len(found) or result is None or (seeds and "grad_outputs" not in given):
        return None
    keywords = tuple(found)
    if positional:                                 # the seed comes first in `given`
        keywords = keywords[1:]
    try:
        return bound.signature((*arguments, *trees), kinds, result, keywords)
    except ValueError:                             # a Python number where an array was expected
        return None


def _wrt_tree(wrt: Any, first: int) -> Tree:
    if wrt is None:
        return Container("none")
    if isinstance(wrt, int):
        return Static(first)
    return Container("list" if type(wrt) is list else "tuple", tuple([Static(first + k) for k in range(len(wrt))]))


def _numbered(value: Any, start: int, count: int, objects: list[Any]) -> Tree | None:
    """The tree of seeds or buffers, with leaves numbered from `start`; None for lists of numbers and the like."""
    leaves, treedef = tree.flatten(value)
    if len(leaves) != count:
        return None
    objects[start:start + count] = leaves
    return signature_tree(tree.unflatten(treedef, range(start, start + count)))


def _results(request: Request, argument_numbers: Sequence[Any], result_numbers: Any) -> Any:
    """The tree of the returned value, with the numbers of results as leaves."""
    count = len(request.seeds) if request.value else 0
    order = [*request.fresh, *request.into]
    number = {leaf: count + k for k, leaf in enumerate(order)}
    gradients = tuple([regrouped(numbers, number) for numbers in argument_numbers])
    return (result_numbers, gradients) if request.value else gradients


def regrouped(numbers: Any, per_leaf: dict[int, Any]) -> Any:
    """The argument's tree with the entry of each leaf number; None if no leaf has an entry."""
    if not any(leaf in per_leaf for leaf in tree.leaves(numbers)):
        return None
    return tree.map(per_leaf.get, numbers)


def usual_seeds(result_numbers: Any, outputs: Sequence[Value]) -> Iterator[Any]:
    """Seeds of the usual kinds for pullbacks: arrays, and Python or NumPy numbers for scalars."""
    def seed(number: int, as_float: bool) -> Any:
        output = outputs[number]
        if not output.dtype.is_differentiable:
            return None
        if output.shape:
            return np.zeros(output.shape, output.dtype.numpy)
        return 0.0 if as_float else output.dtype.numpy.type(0)
    scalars = any(not output.shape for output in outputs)
    for as_float in (True, False) if scalars else (False,):
        yield tree.map(lambda number, as_float=as_float: seed(number, as_float), result_numbers)
