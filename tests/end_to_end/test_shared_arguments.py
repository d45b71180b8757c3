"""Arguments that overlap in memory, of functions that assign to them: NumPy's results, in the caller's arrays too."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import SignatureError

Function = Callable[..., Any]


def doubled(x: Any, y: Any) -> Any:
    y[...] = 2 * x
    return x, np.sum(y)


def accumulated(x: Any, y: Any) -> Any:
    for k in range(3):
        y[k] += 0.5 * x[-1 - k]
    return x * 1.0


def through_views(x: Any, y: Any) -> Any:
    flat = x.reshape(-1)
    flat[0] = 7.0
    y.T[-1] -= x.T[0]
    np.multiply(x, 0.5, out=y)
    return flat.sum(), y


def assert_as_numpy(fun: Function, compiled: Function, arguments: Callable[[], tuple[Any, ...]]) -> None:
    """Results and all memory; `arguments` gives (the memory, the function's arguments in it), new each time."""
    memory, *args = arguments()
    expected = [np.copy(leaf) for leaf in bw.tree.leaves(fun(*args))]
    found_memory, *args = arguments()
    found = bw.tree.leaves(compiled(*args))
    np.testing.assert_allclose(found_memory, memory, rtol=1e-14)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


LINES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "same": lambda b: (b[:5], b[:5]),
    "shifted": lambda b: (b[1:6], b[:5]),
    "behind": lambda b: (b[:5], b[2:7]),
    "backwards": lambda b: (b[6:1:-1], b[:5]),
    "both backwards": lambda b: (b[7:2:-1], b[6:1:-1]),
    "steps": lambda b: (b[::2][:5], b[3:8]),
    "other steps": lambda b: (b[:10:2], b[:15:3]),
    "steps between": lambda b: (b[:10:2], b[1:11:2]),
    "apart": lambda b: (b[:5], b[5:10]),
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("fun", [doubled, accumulated])
def test_lines(fun: Function, name: str) -> None:
    def arguments() -> tuple[Any, ...]:
        memory = np.arange(1.0, 17.0)
        return (memory, *LINES[name](memory))

    assert_as_numpy(fun, bw.jit(fun), arguments)
    assert_as_numpy(fun, bw.compile(fun, np.zeros(5), np.zeros(5)), arguments)


PLANES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "same": lambda b: (b, b),
    "transposed": lambda b: (b[:4, :4], b[:4, :4].T),
    "interior": lambda b: (b[1:4, 1:5], b[:3, 2:6]),
    "rows": lambda b: (b[1:4], b[2:5]),
    "flipped": lambda b: (b[1:4, 1:5], b[3:0:-1, 5:1:-1]),
    "flattened": lambda b: (b.reshape(-1)[3:15].reshape(3, 4), b[1:4, :4]),
    "reshaped": lambda b: (b.reshape(-1)[3:27:2].reshape(3, 4), b[1:4, :4]),
    "diagonals": lambda b: (np.lib.stride_tricks.as_strided(b, (2, 3), (8 * 7, 8 * 13)), b[:2, :3]),
}


@pytest.mark.parametrize("name", PLANES)
@pytest.mark.parametrize("order", ["C", "F", "foreign"])
@pytest.mark.parametrize("fun", [doubled, through_views])
def test_planes(fun: Function, order: Any, name: str) -> None:
    def arguments() -> tuple[Any, ...]:
        numbers = np.arange(1.0, 37.0).reshape(6, 6)
        memory = np.frombuffer(bytearray(numbers.tobytes())).reshape(6, 6) if order == "foreign" else np.array(numbers, order=order)
        return (memory, *PLANES[name](memory))

    assert_as_numpy(fun, bw.jit(fun), arguments)


def test_the_second_call_compiles_nothing_and_other_overlaps_do() -> None:
    traces = []
    note = traces.append           # which nobody follows: a list is put back where a trace is given up

    def fun(x: Any, y: Any) -> None:
        note(1)
        y += x

    compiled, memory = bw.jit(fun), np.ones(12)
    for start, count in ((0, 2), (3, 2), (5, 2)):              # as far from each other, anywhere: the same
        compiled(memory[start:start + 4], memory[start + 1:start + 5])
        assert len(traces) == count
    compiled(memory[:4], memory[2:6])
    assert len(traces) == 3
    copy.deepcopy(compiled)(memory[:4], memory[2:6])


def test_containers_keywords_and_numbers() -> None:
    def step(p: Any, k: Any, *, mode: str = "all", n: int = 3) -> Any:
        p["w"][1:] += p["b"][:-1] * k
        if mode == "all":
            p["b"] *= 2
        for i in range(n):
            p["w"][i] += p["b"][-1 - i]
        return {"sum": p["w"].sum() + p["b"].sum()}

    compiled = bw.jit(step)
    for options in ({}, {"mode": "some"}, {"n": 2}, {"mode": "some", "n": 4}):
        for k in (2.0, 2, np.float64(3.0)):
            def arguments(k: Any = k) -> tuple[Any, ...]:
                memory = np.arange(10.0)
                return memory, {"w": memory[:8], "b": memory[2:]}, k

            assert_as_numpy(lambda p, k: step(p, k, **options), lambda p, k: compiled(p, k=k, **options), arguments)


def test_what_is_read_from_outside_and_methods() -> None:
    class Model:
        rate = 3.0

        def step(self, x: Any, y: Any) -> Any:
            x += self.rate * y
            return x

    model = Model()
    compiled = bw.jit(model.step)
    x = np.ones(2)
    assert compiled(x, x).tolist() == x.tolist() == [4.0, 4.0]
    model.rate = 0.5
    assert compiled(x, x).tolist() == x.tolist() == [6.0, 6.0]


def test_the_same_object_is_the_same_object() -> None:
    def fun(x: Any, y: Any) -> Any:
        y += 1
        return x * 2 if x is y else x

    x = np.ones(2)
    assert bw.jit(fun)(x, x).tolist() == [4.0, 4.0]
    assert bw.jit(fun)(x, x[:]).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128, bool])
def test_dtypes(dtype: Any) -> None:
    def fun(x: Any, y: Any) -> Any:
        x[1:] = y[:-1]
        return y.sum()

    assert_as_numpy(fun, bw.jit(fun), lambda: (b := np.arange(6).astype(dtype), b[:4], b[2:]))


def test_mutates_says_what_is_written_back() -> None:
    x = np.arange(4.0)
    assert bw.jit(doubled, mutates=False)(x[:3], x[1:])[0].tolist() == [0.0, 0.0, 2.0] and x.tolist() == [0.0, 1.0, 2.0, 3.0]
    bw.jit(doubled, mutates="y")(x[:3], x[1:])
    assert x.tolist() == [0.0, 0.0, 2.0, 4.0]

    def both(x: Any, y: Any) -> None:
        x += 1
        y += 1

    with pytest.raises(SignatureError, match="x and y share memory, one of them is assigned to, and mutates= selects only some of them"):
        bw.jit(both, mutates="y")(x[:3], x[1:])
    assert x.tolist() == [0.0, 0.0, 2.0, 4.0]


@pytest.mark.parametrize("columns", [False, True])
def test_what_lies_between_the_elements_of_others(columns: bool) -> None:
    """Arrays that share no element with what overlaps, but lie in the same stretch of memory, and another such group."""
    def fun(x: Any, y: Any, z: Any, w: Any) -> Any:
        z += 0.5
        first = x.copy()
        x[:] = np.cumsum(y)
        w[1:] -= z[:-1]
        return first, y * 1.0, np.sum(w)

    def arguments() -> tuple[Any, ...]:
        memory = np.arange(48.0).reshape(16, 3)
        line = memory[:, 1] if columns else memory.reshape(-1)[:16]
        return memory, line[8:0:-2], line[1:5], line[5:13:2], line[7:15:2]

    assert_as_numpy(fun, bw.jit(fun), arguments)


def test_others_are_written_back_too() -> None:
    def all_of(p: Any, y: Any, z: Any) -> Any:
        p["x"] += 1
        y *= 2
        z -= p["x"]
        p["w"] += 5
        return y.sum()

    for mutates, same in ((True, "pyz"), (("p", 1), "py"), (("p", -2, "z"), "pyz"), (False, "")):
        for compile in (lambda f, m=mutates: bw.jit(f, mutates=m), lambda f, m=mutates: bw.compile(f, *arguments(), mutates=m)):
            def arguments() -> Any:
                memory = np.arange(6.0)
                return {"x": memory[:4], "w": np.zeros(1)}, memory[2:], np.ones(4)

            expected, given, found = arguments(), arguments(), arguments()
            assert compile(all_of)(*found) == all_of(*expected)
            for name, *arrays in zip("pyz", given, expected, found, strict=True):
                before, after, got = [np.concatenate(bw.tree.leaves(one)) for one in arrays]
                assert got.tolist() == (after if name in same else before).tolist()


def test_positions_in_mutates_are_of_arguments() -> None:
    def fun(p: Any, b: Any) -> None:
        for array in (p["a"], p["c"], b):
            array += 1

    for mutates, expected in ((1, [0, 0, 1]), ((0,), [1, 1, 0]), (-1, [0, 0, 1]), ("b", [0, 0, 1]), (("p", 1), [1, 1, 1])):
        for call in (lambda p, b, m=mutates: bw.jit(fun, mutates=m)(p, b), lambda p, b, m=mutates: bw.jit(fun, mutates=m)(b=b, p=p),
                     lambda p, b, m=mutates: bw.compile(fun, p, b, mutates=m)(p, b)):
            p, b = {"a": np.zeros(1), "c": np.zeros(1)}, np.zeros(1)
            call(p, b)
            assert [p["a"][0], p["c"][0], b[0]] == expected
    for unknown in ("x", 2, (0, "c"), -3):
        for transform in (lambda m: bw.jit(fun, mutates=m), lambda m: bw.compile(fun, p, b, mutates=m)):
            with pytest.raises(SignatureError, match="mutates has .*, but fun takes p, b"):
                transform(unknown)


def test_what_cannot_be() -> None:
    z = np.ones(3) + 2j
    with pytest.raises(SignatureError, match=r"z and r share memory, one of them is assigned to, and their dtypes differ(.|\n)*r.copy()"):
        bw.jit(lambda z, r: (r.__imul__(2), z)[1])(z, z.real)
    x = np.ones(3)
    x.setflags(write=False)
    with pytest.raises(ValueError, match=r"y is assigned to, but the array is read-only\n  hint: pass a copy, y.copy\(\)"):
        bw.jit(doubled)(x, x)
    wide = np.lib.stride_tricks.as_strided(np.zeros(3), (2, 3), (0, 8))
    with pytest.raises(bw.errors.UnsupportedError, match="has several elements in one place"):
        bw.jit(doubled)(wide, wide)
    with pytest.raises(SignatureError, match="y is assigned to and shares memory with x"):
        bw.grad(lambda x, y: doubled(x, y)[1])(wide, wide)


def test_a_broadcast_argument_changes_with_what_it_is_of() -> None:
    def arguments() -> tuple[Any, ...]:
        x = np.arange(3.0)
        return x, x, np.broadcast_to(x[1:2], (4,))

    def fun(x: Any, y: Any) -> Any:
        x[1] = 5.0
        return y.sum()

    assert_as_numpy(fun, bw.jit(fun), arguments)
