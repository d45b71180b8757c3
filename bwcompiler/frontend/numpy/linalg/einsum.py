"""np.einsum: the specification, the order of contraction (NumPy's own), and each pair as transposes and a matmul."""

from __future__ import annotations

import itertools
import string
from typing import Any, TypeAlias

import numpy as np

from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import store
from bwcompiler.frontend.numpy.linalg.diagonals import diagonal_value
from bwcompiler.frontend.numpy.linalg.linear import dot, matrix_product, multiplied, permuted, totalled
from bwcompiler.frontend.numpy.manipulation.layout import transposed, viewed
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import cast, operand, reshape, value_as
from bwcompiler.frontend.tracing.promotion import common_dtype, requested, require_cast, strong
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.storages.shapes import known_shape
from bwcompiler.frontend.tracing.storages.views import DiagonalView, broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.extent import exact_count
from bwcompiler.ir.op import Value

Labels: TypeAlias = tuple[str, ...]


@implements(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, dtype: Any = None, order: Any = "K",
           casting: Any = "safe") -> Any:
    inputs, output, arrays = parse(operands)
    if len(arrays) == 1 and out is None and dtype is None and isinstance(arrays[0], Tracer):
        view = _as_view(arrays[0], inputs[0], output)
        if view is not None:
            return view
    kinds = tuple([operand(array)[1] for array in arrays])
    target = requested(dtype) or common_dtype(tuple([strong(kind) for kind in kinds]))
    values = [value_as(array) for array in arrays]
    for value in values:
        require_cast(value.dtype, target, casting, "np.einsum")
    values = [cast(value, target) for value in values]
    result = contract_all(values, inputs, output)
    if out is None:
        return fresh(result)
    store(out, result, casting, "einsum")
    return out


def _as_view(x: Tracer, labels: Labels, output: Labels) -> Tracer | None:
    """The result of einsum for one array without summation, a writable view; None if it sums."""
    if set(labels) != set(output):
        return None
    view = x
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if view.shape[first] != view.shape[second]:
                return None
            step = DiagonalView(view.shape, 0, (first, second), True)
            view = viewed(view, (*view._chain, step), step.shape)
            labels = (*[one for k, one in enumerate(labels) if k not in (first, second)], label)
    return transposed(view, tuple([labels.index(label) for label in output]))


def parse(operands: tuple[Any, ...]) -> tuple[list[Labels], Labels, list[Any]]:
    """The labels of every operand and of the result, and the operands."""
    if isinstance(operands[0], str):
        text, arrays = operands[0].replace(" ", ""), list(operands[1:])
    else:
        text, arrays = _from_sublists(operands)
    ranks = [len(operand(array)[0].shape) for array in arrays]
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"np.einsum: {len(terms)} terms in {text!r}, but {len(arrays)} operands")
    inputs = [_labels(term, rank, text) for term, rank in zip(terms, ranks, strict=True)]
    broadcast = max(([label for label in labels if label.isdigit()] for labels in inputs), key=len)
    if arrow:
        if broadcast and "..." not in right:
            raise ValueError(f"np.einsum: {text!r} has '...' of {len(broadcast)} axes on the left, and none in the output")
        output = _output_labels(right, broadcast)
    else:
        counts = [label for labels in inputs for label in labels if not label.isdigit()]
        output = (*broadcast, *sorted(label for label in set(counts) if counts.count(label) == 1))
    known = {label for labels in inputs for label in labels}
    if len(set(output)) != len(output) or not known.issuperset(output):
        raise ValueError(f"np.einsum: the output of {text!r} must name every label once and only labels of the operands")
    return inputs, output, arrays


def _from_sublists(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """The form einsum(x, [0, 1], y, [1, 2], [0, 2])."""
    arrays = list(operands[:2 * (len(operands) // 2):2])
    lists = list(operands[1::2]) if len(operands) % 2 == 0 else [*operands[1::2], operands[-1]]
    texts = ["".join("..." if label is Ellipsis else string.ascii_letters[label] for label in one) for one in lists]
    if len(operands) % 2:
        return ",".join(texts[:-1]) + "->" + texts[-1], arrays
    return ",".join(texts), arrays


def _labels(term: str, rank: int, text: str) -> Labels:
    """One label per axis; the axes of an ellipsis are named "0", "1", ... from the last one backwards."""
    before, dots, after = term.partition("...")
    if not (before + after).isalpha() and before + after:
        raise ValueError(f"np.einsum: {term!r} in {text!r} is not a term of letters and '...'")
    extra = rank - len(before) - len(after)
    if extra < 0 or (extra and not dots):
        raise ValueError(f"np.einsum: the term {term!r} does not fit an operand with {rank} axes")
    return (*before, *[str(k) for k in reversed(range(extra))], *after)


def _output_labels(right: str, broadcast: list[str]) -> Labels:
    before, dots, after = right.partition("...")
    return (*before, *(broadcast if dots else []), *after)


def contract_all(values: list[Value], inputs: list[Labels], output: Labels) -> Value:
    """The result with its axes in the order of `output`."""
    extents = _extents(values, inputs)
    terms = [_prepared(value, labels, extents) for value, labels in zip(values, inputs, strict=True)]
    for positions in _path(terms, output):
        chosen = [terms.pop(position) for position in sorted(positions, reverse=True)][::-1]
        keep = set(output).union(*[labels for _, labels in terms])
        chosen = [_summed(value, labels, keep | _others(chosen, k)) for k, (value, labels) in enumerate(chosen)]
        term = chosen[0]
        for k, other in enumerate(chosen[1:], 1):
            term = _pair(*term, *other, keep.union(*[labels for _, labels in chosen[k + 1:]]))
        terms.append(_summed(*term, keep))
    value, labels = terms[0]
    missing = [label for label in output if label not in labels]
    value = permuted(value, tuple([labels.index(label) for label in output if label in labels]))
    if missing:
        value = reshape(value, tuple([1 if label in missing else extents[label] for label in output]))
    return broadcast_value(value, tuple([extents[label] for label in output]))


def _others(terms: list[tuple[Value, Labels]], position: int) -> set[str]:
    return set(itertools.chain.from_iterable(labels for k, (_, labels) in enumerate(terms) if k != position))


def _extents(values: list[Value], inputs: list[Labels]) -> dict[str, Any]:
    extents: dict[str, Any] = {}
    for value, labels in zip(values, inputs, strict=True):
        for extent, label in zip(value.shape, labels, strict=True):
            if extents.setdefault(label, extent) == 1:
                extents[label] = extent
            elif extent not in (1, extents[label]):
                raise ShapeError(f"np.einsum: label {label!r} has extents {extents[label]} and {extent}")
    return extents


def _prepared(value: Value, labels: Labels, extents: dict[str, Any]) -> tuple[Value, Labels]:
    """Drop axes of extent 1 that are broadcast, and take diagonals for repeated labels."""
    kept = [k for k, label in enumerate(labels) if value.shape[k] == extents[label] or labels.count(label) > 1]
    if len(kept) < len(labels):
        value = reshape(value, tuple([value.shape[k] for k in kept]))
        labels = tuple([labels[k] for k in kept])
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if value.shape[first] != value.shape[second]:
                raise ShapeError(f"np.einsum: label {label!r} is repeated with extents {value.shape[first]}, "
                                 f"{value.shape[second]}")
            value = diagonal_value(value, 0, first, second)
            labels = (*[one for k, one in enumerate(labels) if k not in (first, second)], label)
    return value, labels


def _path(terms: list[tuple[Value, Labels]], output: Labels) -> list[tuple[int, ...]]:
    """The order of contraction: the terms that each step contracts."""
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    letters = dict(zip(dict.fromkeys(label for _, labels in terms for label in labels), string.ascii_letters, strict=False))
    text = ",".join("".join(letters[label] for label in labels) for _, labels in terms)
    text += "->" + "".join(letters[label] for label in output if label in letters)
    return list(np.einsum_path(text, *[_dummy(value.shape) for value, _ in terms], optimize="greedy")[0][1:])


def _dummy(shape: tuple[Any, ...]) -> Any:
    """An array of that shape without memory of its own."""
    return np.broadcast_to(np.float64(0.0), known_shape(shape))


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: Any = False) -> Any:
    return np.einsum_path(*[_dummy(one.shape) if isinstance(one, Tracer) else one for one in operands], optimize=optimize)


def _summed(value: Value, labels: Labels, keep: set[str]) -> tuple[Value, Labels]:
    """Sum over labels that no other term or the result needs."""
    axes = tuple([k for k, label in enumerate(labels) if label not in keep])
    if not axes:
        return value, labels
    return totalled(value, axes), tuple([label for label in labels if label in keep])


def _pair(x: Value, x_labels: Labels, y: Value, y_labels: Labels, keep: set[str]) -> tuple[Value, Labels]:
    """Two terms multiplied; labels they share are summed unless they are kept."""
    shared = [label for label in x_labels if label in y_labels]
    batch = [label for label in shared if label in keep]
    inner = [label for label in shared if label not in keep]
    rows = [label for label in x_labels if label not in shared]
    columns = [label for label in y_labels if label not in shared]
    extents = {**dict(zip(x_labels, x.shape, strict=True)), **dict(zip(y_labels, y.shape, strict=True))}
    split = [group for group in (rows, columns, inner) if len(group) > 1 and not all(isinstance(extents[label], int) for label in group)]
    if not inner or not (rows or columns) or split:                # `split`: axes that cannot be merged into one
        return _multiplied(x, x_labels, y, y_labels, (*batch, *rows, *columns), inner, extents)

    def arranged(value: Value, labels: Labels, *groups: list[str]) -> Value:
        value = permuted(value, tuple([labels.index(label) for group in (batch, *groups) for label in group]))
        sizes = [exact_count([extents[label] for label in group]) for group in groups]
        return reshape(value, (*[extents[label] for label in batch], *sizes))

    product = matrix_product(arranged(x, x_labels, rows, inner), arranged(y, y_labels, inner, columns))
    labels = (*batch, *rows, *columns)
    return reshape(product, tuple([extents[label] for label in labels])), labels


def _multiplied(x: Value, x_labels: Labels, y: Value, y_labels: Labels, kept: Labels, inner: list[str],
                extents: dict[str, Any]) -> tuple[Value, Labels]:
    labels = (*kept, *inner)
    shape = tuple([extents[label] for label in labels])
    spread = []
    for value, own in ((x, x_labels), (y, y_labels)):
        value = permuted(value, tuple([own.index(label) for label in labels if label in own]))
        spread.append(broadcast_value(reshape(value, tuple([extents[label] if label in own else 1 for label in labels])), shape))
    product = multiplied(*spread)
    if inner:
        product = totalled(product, tuple(range(len(kept), len(labels))))
    return product, kept


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    values = align_dtypes(arrays)
    if len(values) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(values) == 2:                                              # np.dot, of any number of axes
        found = dot(*map(fresh, values))
        if out is None:
            return found
        store(out, value_of(found), "no", "linalg.multi_dot")
        return out
    for place, value in enumerate(values):
        if value.rank != 2 and not (value.rank == 1 and place in (0, len(values) - 1)):
            raise np.linalg.LinAlgError(f"{value.rank}-dimensional array given. Array must be two-dimensional")
    for first, second in itertools.pairwise(values):
        if first.shape[-1:] != second.shape[:1]:
            raise ShapeError(f"np.linalg.multi_dot: shapes {first.shape} and {second.shape} are not aligned")
    labels: list[Labels] = []
    for k, value in enumerate(values):
        names = (string.ascii_letters[k], string.ascii_letters[k + 1])
        labels.append(names if value.rank == 2 else names[1:] if k == 0 else names[:1])
    ends = [labels[0][0]] if values[0].rank == 2 else []
    ends += [labels[-1][-1]] if values[-1].rank == 2 else []
    result = contract_all(values, labels, tuple(ends))
    if out is None:
        return fresh(result)
    store(out, result, "no", "linalg.multi_dot")
    return out


def align_dtypes(arrays: Any) -> list[Value]:
    """The arrays as values of their common dtype."""
    target = common_dtype(tuple([strong(operand(array)[1]) for array in arrays]))
    return [cast(value_as(array), target) for array in arrays]


