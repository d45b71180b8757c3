"""Indexing, item assignment and views of views: random programs against NumPy, and the corner cases by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import DTypeError, TracerError, TracerIndexError
from bwcompiler.frontend import trace
from bwcompiler.frontend.tracing.storages.strided_views import StridedView
from bwcompiler.frontend.tracing.storages.views import ReshapeView
from tests.unit.frontend.comparing import compare

SHAPES = ((5,), (3, 4), (2, 3, 4), (1, 4), (4, 1, 3), (0, 3))


def random_slice(rng: np.random.Generator, extent: int) -> slice:
    def bound() -> int | None:
        return None if rng.random() < 0.4 else int(rng.integers(-extent - 2, extent + 3))
    return slice(bound(), bound(), None if rng.random() < 0.4 else int(rng.choice([-2, -1, 1, 2, 3])))


def random_basic(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    entries: list[Any] = []
    for extent in shape[:rng.integers(0, len(shape) + 1)]:
        if rng.random() < 0.15:
            entries.append(None)
        entries.append(int(rng.integers(-extent, extent)) if extent and rng.random() < 0.35 else random_slice(rng, extent))
    if rng.random() < 0.3:
        entries.insert(int(rng.integers(0, len(entries) + 1)), Ellipsis)
    return tuple(entries)


def random_advanced(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    common = tuple(int(n) for n in rng.integers(1, 4, size=rng.integers(1, 3)))
    entries: list[Any] = []
    axis = 0
    while axis < len(shape):
        extent, choice = shape[axis], rng.random()
        if extent and choice < 0.45:
            index = rng.integers(-extent, extent, size=common[int(rng.integers(0, len(common))):])
            entries.append(index.tolist() if rng.random() < 0.3 else index)
        elif extent and choice < 0.55:
            entries.append(int(rng.integers(-extent, extent)))
        elif choice < 0.65:
            entries.append(None)
            continue
        elif choice < 0.72 and not any(isinstance(entry, list | np.ndarray) for entry in entries):
            entries.append(rng.random(extent) > 0.4)
        else:
            entries.append(random_slice(rng, extent))
        axis += 1
    if rng.random() < 0.25:
        keep = int(rng.integers(0, len(entries) + 1))
        entries[keep:] = [Ellipsis] if rng.random() < 0.7 else []
    return tuple(entries)


def valid(x: np.ndarray[Any, Any], index: Any) -> bool:
    try:
        x[index]
    except IndexError:
        return False
    return True


@pytest.mark.parametrize("seed", range(150))
def test_random_reads(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=SHAPES[seed % len(SHAPES)])
    for make in (random_basic, random_advanced, random_advanced):
        index = make(rng, x.shape)
        if valid(x, index):
            compare(lambda a, index=index: a[index], x)


def random_write(rng: np.random.Generator, x: np.ndarray[Any, Any]) -> Callable[[Any], None]:
    """A function that writes into an array of x's shape at random; no element twice, so that the result is defined."""
    while True:
        index = random_basic(rng, x.shape) if rng.random() < 0.6 else random_advanced(rng, x.shape)
        if valid(x, index) and len(set(np.arange(x.size).reshape(x.shape)[index].ravel().tolist())) == x[index].size:
            break
    shape = np.shape(x[index])
    shape = shape[int(rng.integers(0, len(shape) + 1)):]
    value = rng.normal(size=shape)
    kind = int(rng.integers(0, 4))

    def write(a: Any) -> None:
        if kind == 0:
            a[index] = value
        elif kind == 1:
            a[index] += value
        elif kind == 2:
            a[index] = a[index] * 2 + value
        else:
            a[index] = 3

    return write


def random_view(rng: np.random.Generator, x: np.ndarray[Any, Any]) -> Callable[[Any], Any]:
    choice = int(rng.integers(0, 9))
    if choice == 6:
        return lambda a: a * 2 + a
    if choice == 7:
        return lambda a: np.where(a > 0, a, -a) + a.T.copy().T
    if choice == 8:
        return lambda a: np.zeros_like(a) + np.ones(a.shape, order="F")
    if choice == 0:
        return lambda a: a.T
    if choice == 1:
        axes = tuple(int(k) for k in rng.permutation(x.ndim))
        return lambda a: a.transpose(axes)
    if choice == 2:
        return lambda a: a.reshape(-1)
    if choice == 3 and x.ndim > 1:
        shape = (x.shape[0] * x.shape[1], *x.shape[2:])
        return lambda a: a.reshape(shape)
    if choice == 4:
        return lambda a: np.flip(a, 0) if a.ndim else a
    index = random_basic(rng, x.shape)
    while not valid(x, index):
        index = random_basic(rng, x.shape)
    return lambda a: a[(*index, Ellipsis)] if Ellipsis not in index else a[index]


@pytest.mark.parametrize("seed", range(200))
def test_random_programs_of_views_and_writes(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    x = rng.normal(size=SHAPES[seed % len(SHAPES)])
    shadows = [x.copy()]
    steps: list[tuple[int, Callable[[Any], Any], bool]] = []
    for _ in range(7):
        position = int(rng.integers(0, len(shadows)))
        if rng.random() < 0.5 or not isinstance(shadows[position], np.ndarray):
            view = random_view(rng, shadows[position])
            steps.append((position, view, True))
            shadows.append(view(shadows[position]))
        else:
            write = random_write(rng, shadows[position])
            steps.append((position, write, False))
            write(shadows[position])

    def program(a: Any) -> Any:
        handles = [a]
        for position, step, makes_view in steps:
            if makes_view:
                handles.append(step(handles[position]))
            else:
                step(handles[position])
        return [handle + 0 for handle in handles]

    compare(program, x)
    compare(program, np.asfortranarray(x))
    compare(lambda a: program(a.copy()), x)


@pytest.mark.parametrize("seed", range(60))
def test_memory_that_views_share(seed: int) -> None:
    """Of two random views, of the argument and of each other, in both orders."""
    rng = np.random.default_rng(4000 + seed)
    x = rng.normal(size=SHAPES[seed % len(SHAPES)])
    views, shadows = [], [x]
    for _ in range(4):
        position = int(rng.integers(0, len(shadows)))
        view = random_view(rng, shadows[position])
        made = view(shadows[position])
        if isinstance(made, np.ndarray):
            views.append((position, view))
            shadows.append(made)

    def program(a: Any) -> Any:
        found = [a]
        for position, view in views:
            found.append(view(found[position]))
        return [[bool(asked(one, other)) for one in found for other in found] for asked in (np.shares_memory, np.may_share_memory)]

    for order in ("C", "F"):
        argument = x.copy(order)
        expected = program(argument)
        answers: list[Any] = []
        trace(lambda a, answers=answers: answers.append(program(a)), (argument,))
        assert answers[-1] == expected


def _stored_at_range(x: Any) -> Any:
    x[range(2), 0] = -1.0
    return x


def _swap_rows(x: Any) -> Any:
    x[[0, 1]] = x[[1, 0]]
    return x


def _views(x: Any) -> Any:
    y = x[1:]
    z = y[:, ::-2]
    z[0] = 9
    w = z.T
    w[0, 0] = -1
    x[2] = 0
    return y, z, w, x.reshape(-1)[:3]


def _shares_after_ravel(x: Any) -> Any:
    x.ravel()[1] = 5
    x.T.ravel()[0] = 7                # a copy: no effect
    x.flatten()[2] = 8                # a copy: no effect
    x.T.reshape(-1)[3] = 7            # a copy: no effect
    return x


def _masks(x: Any) -> Any:
    y = x.copy()
    y[y > 0] = -1
    y[y < -1] = y[0, 0]
    z = x.copy()
    z[np.array([True, False, True])] = 4
    z[:, np.array([True, False, True, False])] *= 2
    w = x.copy()
    w[x[:, 0] > 0] = np.arange(4.0)
    w[np.ones(3, bool), 0] += 1
    return y, z, w


def _scatter(x: Any) -> Any:
    np.add.at(x, [0, 0, 1], 1.0)
    np.add.at(x, ([0, 0], [1, 1]), np.array([2.0, 3.0]))
    np.subtract.at(x, (slice(None), [1, 1]), 1.0)
    return x


def _scalars_are_copies(x: Any) -> Any:
    a = x[0, 0]
    b = x[0, 0, ...]
    c = x[0]
    x[0, 0] = 5
    b += 1
    return a, b, c


def _loop(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = x[i, j] + y[i, j - 1]
    return y


def _fill(x: Any) -> Any:
    x.fill(2)
    x[1:].fill(3)
    x[...] = x + 1
    x[()] = x * 2
    np.copyto(x[0], 5.0)
    np.copyto(x, -1.0, where=x > 9)
    return x


def _augmented_overlap(x: Any) -> Any:
    x[1:] += x[:-1]
    x[:, :-1] -= x[:, 1:]
    return x


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "swap rows": _swap_rows, "views": _views, "ravel": _shares_after_ravel, "masks": _masks, "np.add.at": _scatter,
    "scalars": _scalars_are_copies, "loop": _loop, "fill": _fill, "overlap": _augmented_overlap,
    "np.ix_": lambda x: x[np.ix_([0, 2], [1, 3])],
    "traced index": lambda x: x[np.argmax(x, 0), np.arange(4)],
    "traced scalar index": lambda x: (x[np.argmax(x[:, 0])], x[1, x[0].argmax()], x[x[:, 0].argmin(), 1:]),
    "ranges": lambda x: (x[range(2)], x[[0, 1], range(2)], x[range(2, -1, -1), 1:], x[range(0)], _stored_at_range(x)),
    "newaxis": lambda x: (x[None], x[:, None, 1], x[..., None], x[None, ..., None, 0]),
    "empty": lambda x: (x[1:1], x[[]], x[:, 3:1], x[np.zeros(3, bool)]),
    "leading ones": lambda x: _leading_ones(x),
    "put_along_axis": lambda x: np.put_along_axis(x, np.argmax(x, 1, keepdims=True), 0.0, 1),
    "read after base write": lambda x: _read_after_write(x),
    "dtype on write": lambda x: _dtype_on_write(x),
    "masked in place": lambda x: _masked_in_place(x),
    "masks with other indices": lambda x: _masks_with_others(x),
    "masks and three axes": lambda x: _masks_and_three_axes(np.stack([x, 2 * x - 1])),
    "masked reductions": lambda x: (x[x > 0].sum(), np.mean(x[x > 0] ** 2), (x[x > 0] > 1).any(), np.sum(np.exp(x[x[:, 0] > 0]))),
    "traced integer arguments": lambda x: _traced_positions(x, np.argmax(x)),
    "diagonal write": lambda x: _diagonal_write(x),
    "memory of picked columns": lambda x: _picked_columns(x),
}


def _picked_columns(x: Any) -> Any:
    """The index's axis is outermost in memory: raveling copies, raveling the transpose does not."""
    y = x[:, [0, 2]]
    y.ravel()[:] = 5.0
    y.T.ravel()[1] = 7.0
    return y, (y * 2.0).ravel()


def _masks_with_others(x: Any) -> Any:
    rows, columns = x[:, 0] > 0, x[0] > 0
    y = x.copy()
    y[rows, 1] = 0.0
    y[rows, :2] += 1.0
    y[rows, -1] *= 3
    y[rows, 2] = y[rows, 0] * 2
    y[rows, 1:3] = np.array([1.0, 2.0])
    y[rows, ::2] /= 2
    z = x.copy()
    z[:, columns] = 0.5
    z[1:3, columns] = 0.25
    z[..., columns] = 2.0
    z[rows, ...] = 9.0
    w = x.copy()
    w[rows, np.argmax(x[0])] = 7.0
    return y, z, w, x[rows, 1].sum(), x[rows, :2].sum(), x[rows, 1:].mean(axis=0)


def _masks_and_three_axes(x: Any) -> Any:
    first, rows, columns = x[:, :, 0] > 0, x[0, :, 0] > 0, x[0, 0] > 0
    x[1, rows, 2] = 5.0
    x[:, rows, 1] = 6.0
    x[0, rows, :2] += 1
    x[first, 1] = 7.0
    x[:, :, columns] = 1.0
    x[0, ..., columns] = 3.0
    x[:1, rows, -1] = 4.0
    return x, x[1, rows, 0].sum()


def _masked_in_place(x: Any) -> Any:
    y = x.copy()
    y[y < 0] *= 2
    y[x > 0] = np.sqrt(x[x > 0]) + 1
    y[x[:, 0] > 0] -= x[0]
    mask = x > 1
    y[mask] = 3 - y[mask] / x[mask]
    return y


def _traced_positions(x: Any, k: Any) -> Any:
    i, j = k // 4, k % 4
    x[i, j] = 100
    x[i] += 1
    x[:, j - 1] *= 2
    return x[i], x[i - 1, j], x[i:i + 1] if type(i) is np.int64 else x[i][None], x[1:, j]


def _diagonal_write(x: Any) -> Any:
    x[np.arange(3), np.arange(3)] = 1.0
    x.reshape(-1)[::5] += 1
    return x


def _dtype_on_write(x: Any) -> Any:
    n = np.zeros_like(x, dtype=np.int32)
    n[0] = x[0] * 3
    n[1, 1] = 2.7
    return n


def _read_after_write(x: Any) -> Any:
    view = np.broadcast_to(x[0], (2, 4))
    before = view + 0
    x[0, 1] = 100
    return before, view + 0


def _leading_ones(x: Any) -> Any:
    x[0] = np.ones((1, 1, 4))
    x[1:, :2] = x[None, :2, 2:]
    return x


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    x = np.random.default_rng(3).normal(size=(3, 4))
    compare(PROGRAMS[name], x)
    compare(PROGRAMS[name], np.asfortranarray(x))


BAD_INDICES: list[tuple[Any, type[Exception], str]] = [
    (7, IndexError, "index 7 is out of bounds for axis 0 with size 3"),
    ((0, -5), IndexError, "index -5 is out of bounds for axis 1 with size 4"),
    ((0, 0, 0), IndexError, "too many indices for array: array is 2-dimensional, but 3 were indexed"),
    ((Ellipsis, Ellipsis), IndexError, "single ellipsis"),
    (1.5, IndexError, "only integers, slices"),
    ([0, 9], IndexError, "index 9 is out of bounds for axis 0 with size 3"),
    (np.array([True, False]), IndexError, "boolean index did not match indexed array along axis 0"),
    (([0, 1], [0, 1, 2]), IndexError, "shape mismatch: indexing arrays could not be broadcast"),
    (np.array([0.5]), IndexError, "must be of integer"),
]


@pytest.mark.parametrize(("index", "kind", "message"), BAD_INDICES, ids=lambda item: str(item)[:20])
def test_bad_index(index: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message.replace("(", r"\(")):
        trace(lambda x: x[index], (np.ones((3, 4)),))


@pytest.mark.parametrize(("fun", "kind", "message"), [
    (lambda x: np.ones(x[x > 0].shape * 2), TracerError, "number of elements is not known while tracing"),
    (lambda x: np.eye(*x[x > 0].shape), TracerError, "number of elements is not known while tracing"),
    (lambda x: np.kron(x[x > 0], x), TracerIndexError, "np.kron needs it"),
    (lambda x: x[x > 0][None] + x[x > 0][:, None], TracerError, "number of elements is not known while tracing"),
    (lambda x: np.kron(x[x > 0][:, None] * x[x > 0], x), TracerIndexError, "np.kron needs it"),
    (lambda x: x[x > 0].sum(where=True), TracerIndexError, "np.sum with out= or where="),
    (lambda x: x[x > 0].strides, TracerIndexError, ".strides needs it"),
    (lambda x: x[:x.argmax()], TracerError, "traced bound"),
    (lambda x: x[x], DTypeError, "integer"),
    (lambda x: x.__setitem__(slice(0, 2), np.ones(3)), ValueError, "could not broadcast input array from shape"),
    (lambda x: x[0].__setitem__(Ellipsis, 1), TypeError, "immutable"),
    (lambda x: np.broadcast_to(x, (2, 4)).__setitem__(0, 1.0), ValueError, "read-only"),
])
def test_refused_index(fun: Callable[[Any], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        trace(fun, (np.ones(4),))


def test_stale_value_is_read_once() -> None:
    """Composed slices are one slice op, and a view that is not stale is not replayed."""
    def fun(x: Any) -> Any:
        y = x[1:, 2:][::2, :2].T
        return y + y

    graph = trace(fun, (np.ones((6, 7)),)).graph
    assert [value.op.name for value in graph.body] == ["slice", "transpose", "add"]


NESTED: dict[str, Callable[[Any], Any]] = {
    "a view or a copy": lambda v: v.reshape(2, 4) if v.ndim == 1 else v.T.reshape(-1),
    "views": lambda v: v.reshape(2, 4) if v.ndim == 1 else v[:, ::-1][::-1].reshape(-1),
    "of three axes": lambda v: v.reshape(2, 4).swapaxes(0, 1).reshape(4, 2).T.reshape(2, 2, 2).transpose(2, 0, 1).reshape(8),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("copied", [False, True])
def test_views_of_views_of_views(name: str, copied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NumPy has them; and each is one step further than the one it is of, not followed from the beginning."""
    step = NESTED[name]

    def fun(x: Any, count: int) -> Any:
        y = x.copy() if copied else x
        v = y
        for _ in [None] * count:
            v = step(v)
            v[..., 0] if v.ndim > 1 else v[0]
        v[...] = v * np.arange(8.0).reshape(v.shape)
        return y, v

    steps: list[int] = []

    def counting(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def counted(self: Any, base: Any) -> Any:
            steps.append(1)
            return original(self, base)
        return counted

    for view in (StridedView, ReshapeView):
        for method in ("read", "shadow"):
            monkeypatch.setattr(view, method, counting(getattr(view, method)))
    counts = []
    for count in (20, 40, 80):
        x = np.arange(8.0)
        steps.clear()
        found = bw.jit(fun, static_argnums=1, mutates=False)(x, count)
        counts.append(len(steps))
        for one, other in zip(found, fun(x, count), strict=True):
            np.testing.assert_array_equal(one, other)
    assert counts[2] - counts[1] < 2.5 * (counts[1] - counts[0]), counts
