"""The entry: the same calls through machine code and through `python_entry.py`: forms of calls, guards, results."""

from __future__ import annotations

import gc
import pickle
import sys
import timeit
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bwcompiler.ir.contracts.call_signature import CallSignature, Container, Leaf, Read, Static
from bwcompiler.ir.types import BOOL, C64, C128, DTYPES, F32, F64, I8, I64, U8, U64, DType, tensor
from bwcompiler.runtime import python_abi
from bwcompiler.runtime.executable import CompiledFunction, Executable, chain
from tests.unit.runtime.programs import (
    NESTED,
    NESTED_TEXT,
    SCALAR,
    VECTOR,
    X,
    Y,
    Z,
    copy_bytes,
    load,
    loop,
    native,
    nested_arguments,
    program,
    raise_error,
    slow_path,
    store,
    sum_of,
    takes_slow_path,
    vectors,
)


def test_this_interpreter_is_supported() -> None:
    assert python_abi.is_supported()


def test_arrays(bind: Callable[..., Any]) -> None:
    add = bind(sum_of(3), vectors(3))
    first, second = add(X, Y, Z), add(X, X, X)
    np.testing.assert_array_equal(first, X + Y + Z)
    np.testing.assert_array_equal(second, 3 * X)
    assert type(first) is np.ndarray and first.dtype is np.dtype(np.float64)
    assert first.flags.owndata and first.flags.c_contiguous and first.flags.writeable


class Subclass(np.ndarray[Any, Any]):
    pass


LAYOUTS = {
    "strided": np.arange(10.0)[::2],
    "reversed": np.arange(5.0)[::-1],
    "misaligned": np.zeros(41, np.uint8)[1:].view(np.float64),
    "repeated": np.broadcast_to(np.float64(2.5), 5),
}

OTHERS = {
    "byte-swapped": np.arange(5.0).astype(">f8"),
    "dtype": np.arange(5),
    "float32": np.arange(5, dtype=np.float32),
    "shape": np.arange(6.0),
    "rank": np.arange(5.0)[None],
    "subclass": np.arange(5.0).view(Subclass),
    "list": [0.0] * 5,
    "None": None,
    "number": 1.0,
}


@pytest.mark.parametrize("name", OTHERS)
def test_failed_guards_take_the_slow_path(bind: Callable[..., Any], name: str) -> None:
    add = bind(sum_of(2), vectors(2))
    assert takes_slow_path(add, X, OTHERS[name])
    assert takes_slow_path(add, OTHERS[name], X)


@pytest.mark.parametrize("name", LAYOUTS)
def test_any_layout_is_taken(bind: Callable[..., Any], name: str) -> None:
    add, other = bind(sum_of(2), vectors(2)), LAYOUTS[name]
    np.testing.assert_array_equal(add(X, other), X + other)
    np.testing.assert_array_equal(add(other, other), 2 * other)
    strict = bind(sum_of(2), vectors(2, layouts=("C", "C")))
    assert takes_slow_path(strict, X, other) and not takes_slow_path(strict, X, X)


def test_layouts_that_are_asked_for(bind: Callable[..., Any]) -> None:
    type_ = tensor(F64, (2, 3))
    a = np.arange(6.0).reshape(2, 3)
    fortran, sliced = np.asfortranarray(a), np.arange(24.0).reshape(4, 6)[::2, ::2]
    copy = bind(copy_bytes([(0, 1, 48)], 2), vectors(1, type_, layouts=((8, 16),)))
    np.testing.assert_array_equal(copy(fortran), a)
    assert takes_slow_path(copy, a) and takes_slow_path(copy, sliced)
    backwards = bind(copy_bytes([(0, 1, 48)], 2), vectors(1, type_, layouts=((-24, 8),)))
    np.testing.assert_array_equal(backwards(a[::-1]), a[::-1])


def test_copies_are_released() -> None:
    add, strided = native(sum_of(2), vectors(2)), np.arange(10.0)[::2]
    references = sys.getrefcount(strided)
    tracemalloc.start()
    add(strided, strided)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        add(strided, strided)
    assert tracemalloc.get_traced_memory()[0] - before < 200 and sys.getrefcount(strided) == references
    tracemalloc.stop()


def test_keywords(bind: Callable[..., Any]) -> None:
    text = program(3, loop(5, load(0) + load(1) + "  %s = fsub double %x0, %x1\n" + store(2, "%s")))
    subtract = bind(text, vectors(2, keywords=("y",)))
    np.testing.assert_array_equal(subtract(X, y=Y), X - Y)
    assert takes_slow_path(subtract, X, Y) and takes_slow_path(subtract, X, z=Y) and takes_slow_path(subtract, x=X, y=Y)
    both = bind(text, vectors(2, keywords=("y", "x")))
    np.testing.assert_array_equal(both(y=X, x=Y), X - Y)
    assert takes_slow_path(both, x=X, y=Y) and takes_slow_path(both, X, y=Y)
    turned = bind(text, replace(vectors(2, keywords=("y", "x")), arguments=(Leaf(1), Leaf(0))))       # the order of the call is its own
    np.testing.assert_array_equal(turned(y=Y, x=X), X - Y)


@pytest.mark.parametrize("native", [True, False])
def test_a_chain_takes_the_first_form_that_fits(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_abi, "is_supported", lambda: native)
    long = tensor(F64, (7,))
    forms = [
        Executable(sum_of(2), vectors(2)).form(raise_error),
        Executable(sum_of(2, 7), vectors(2, long)).form(raise_error),
        Executable(sum_of(2), vectors(2, keywords=("y",))).form(raise_error),
        Executable(sum_of(1), vectors(1)).form(raise_error),
    ]
    function = chain(forms, slow_path)
    for _ in range(3):
        np.testing.assert_array_equal(function(X, Y), X + Y)
        np.testing.assert_array_equal(function(np.ones(7), np.ones(7)), np.full(7, 2.0))
        np.testing.assert_array_equal(function(X, y=Y), X + Y)
        np.testing.assert_array_equal(function(X), X)
        assert takes_slow_path(function, X, X, X) and takes_slow_path(function, x=X)


def test_long_chains_need_no_stack() -> None:
    executable = Executable(sum_of(1), vectors(1))
    small = [replace(vectors(1), keywords=(f"k{number}",)) for number in range(3000)]
    function = chain([executable.form(raise_error, signature=signature) for signature in small], slow_path)
    np.testing.assert_array_equal(function(k2999=X), X)
    assert takes_slow_path(function, X)


class Config:
    rate = 1.5


def _cell(value: Any) -> Any:
    return (lambda: value).__closure__[0]  # type: ignore[index]


def test_reads_from_outside_are_guards(bind: Callable[..., Any]) -> None:
    names, config, cell, items, entries = {"n": 3}, Config(), _cell(X), ["a", Y], {"w": 1.0}
    config.note = "some text"  # type: ignore[attr-defined]
    reads = [Read("global", names, "n", 3), Read("attribute", config, "note", "some text"), Read("attribute", config, "rate", 1.5),
             Read("cell", cell, None, X), Read("item", items, 1, Y), Read("entry", entries, "w", 1.0), Read("size", items, None, 2)]
    copy = bind(copy_bytes([(0, 1, 40)], 2), vectors(1), reads=reads)

    def refused() -> bool:
        return takes_slow_path(copy, X)

    assert not refused()
    names["n"] = 10**9
    assert refused()
    names["n"] = 3
    config.note = "".join(["some", " text"])  # type: ignore[attr-defined]
    config.rate = float("1.5")
    assert not refused()                       # equal values will do
    config.rate = 2.0
    assert refused()
    del config.rate
    assert not refused()                       # the class has it
    cell.cell_contents = X.copy()
    assert refused()                           # arrays must be the same
    cell.cell_contents = X
    items.append(0)
    assert refused()
    items.pop()
    items[1] = Y.copy()
    assert refused()
    items[1] = Y
    entries["w"] = 1                           # not of the same type
    assert refused()
    entries["w"] = -0.0
    assert refused()
    entries["w"] = 1.0
    del names["n"]
    assert refused()


def test_memory_and_items_read_from_outside_are_guards(bind: Callable[..., Any]) -> None:
    array, queue, table = np.arange(5.0), deque([1.0, X]), {1: "a", (2, 3): 0.5}
    reads = [Read("bytes", array.view(np.uint8), None, array.tobytes()), Read("items", queue, None, (1.0, X)),
             Read("items", table, None, (1, "a", (2, 3), 0.5))]
    copy = bind(copy_bytes([(0, 1, 40)], 2), vectors(1), reads=reads)
    assert not takes_slow_path(copy, X)
    array[4] = 7.0
    assert takes_slow_path(copy, X)
    array[4] = 4.0
    assert not takes_slow_path(copy, X)
    queue.rotate()
    assert takes_slow_path(copy, X)
    queue.rotate()
    assert not takes_slow_path(copy, X)
    queue[1] = X.copy()
    assert takes_slow_path(copy, X)            # arrays must be the same
    queue[1] = X
    table[1] = "b"
    assert takes_slow_path(copy, X)
    table[1] = "".join(["a"])
    assert not takes_slow_path(copy, X)
    del table[1]
    assert takes_slow_path(copy, X)


def test_numbers_read_from_outside(bind: Callable[..., Any]) -> None:
    names, config = {"rate": 0.5}, Config()
    signature = CallSignature(
        arguments=(Leaf(0),), argument_types=(VECTOR, SCALAR, SCALAR), argument_kinds=("array", "float", "float"),
        result=Leaf(0), result_types=(VECTOR,), result_kinds=("array",))
    text = program(4, loop(5, load(0) + load(1, "0") + load(2, "0") + "  %a = fmul double %x0, %x1\n  %s = fadd double %a, %x2\n"
                           + store(3, "%s")))
    scale = bind(text, signature, reads=[Read("global", names, "rate", leaf=1), Read("attribute", config, "rate", leaf=2)])
    np.testing.assert_array_equal(scale(X), X * 0.5 + 1.5)
    names["rate"], config.rate = 2.0, 7.25
    np.testing.assert_array_equal(scale(X), X * 2.0 + 7.25)
    names["rate"] = 2                          # type: ignore[assignment]
    assert takes_slow_path(scale, X)


def test_a_number_made_by_a_property_takes_the_slow_path() -> None:
    class Lazy:
        @property
        def rate(self) -> float:
            return sys.getrefcount(self) * 1e300

    copy = native(copy_bytes([(0, 1, 40)], 2), vectors(1), reads=[Read("attribute", Lazy(), "rate", 1e300)])
    assert takes_slow_path(copy, X)


def test_wrong_number_and_keywords_take_the_slow_path(bind: Callable[..., Any]) -> None:
    add = bind(sum_of(2), vectors(2))
    assert takes_slow_path(add) and takes_slow_path(add, X) and takes_slow_path(add, X, X, X)
    result = add(X, y=Y)
    assert result[1][0] is X and result[2]["y"] is Y
    assert add(*(X, Y))[1] == 11.0 and add(X, Y, **{})[1] == 11.0


def test_equal_dtype_objects_are_accepted(bind: Callable[..., Any]) -> None:
    add = bind(sum_of(2), vectors(2))
    copy = pickle.loads(pickle.dumps(X))
    assert copy.dtype is not X.dtype  # arrays from pickles have a dtype object of their own
    np.testing.assert_array_equal(add(copy, Y), X + Y)


def test_read_only_arguments_are_accepted(bind: Callable[..., Any]) -> None:
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(bind(sum_of(2), vectors(2))(frozen, frozen), 2 * X)


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (1, 4, 0, 2), (2, 1, 2, 1, 2)])
@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_every_dtype_and_rank(bind: Callable[..., Any], dtype: DType, shape: tuple[int, ...]) -> None:
    type_ = tensor(dtype, shape)
    array = np.arange(type_.size).reshape(shape).astype(dtype.numpy)
    copy = bind(copy_bytes([(0, 1, type_.nbytes)], 2), vectors(1, type_))
    result = copy(array)
    assert (type(result), result.dtype, result.shape) == (np.ndarray, dtype.numpy, shape)
    np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_numpy_scalars(bind: Callable[..., Any], dtype: DType) -> None:
    type_ = tensor(dtype, ())
    signature = replace(vectors(1, type_), argument_kinds=("scalar",), result_kinds=("scalar",))
    copy = bind(copy_bytes([(0, 1, type_.nbytes)], 2), signature)
    for number in (dtype.numpy.type(1), dtype.numpy.type(0), dtype.numpy.type(100)):
        result = copy(number)
        assert type(result) is dtype.numpy.type and result == number
    assert takes_slow_path(copy, 1) and takes_slow_path(copy, np.ones((), dtype.numpy))


NUMBERS: list[tuple[Any, Any, DType, Any]] = [
    ("float", 1.1, F64, 1.1),
    ("float", 1.1, F32, np.float32(1.1)),
    ("float", 1.1, C128, 1.1),
    ("float", 1.1, C64, np.complex64(1.1)),
    ("int", -7, I64, -7),
    ("int", 2**63 - 1, I64, 2**63 - 1),
    ("int", -128, I8, -128),
    ("int", 255, U8, 255),
    ("int", 2**40, U64, 2**40),
    ("int", 3, F64, 3.0),
    ("int", 3, F32, 3.0),
    ("int", 3, C128, 3.0),
    ("int", -3, C64, -3.0),
    ("bool", True, BOOL, True),
    ("bool", False, BOOL, False),
    ("bool", True, F64, 1.0),
    ("bool", True, I64, 1),
    ("bool", True, C64, 1.0),
    ("complex", 1.1 + 2j, C128, 1.1 + 2j),
    ("complex", 1.1 - 2j, C64, np.complex64(1.1 - 2j)),
]


@pytest.mark.parametrize(("kind", "number", "dtype", "expected"), NUMBERS, ids=str)
def test_python_numbers(bind: Callable[..., Any], kind: Any, number: Any, dtype: DType, expected: Any) -> None:
    type_ = tensor(dtype, ())
    copy = bind(copy_bytes([(0, 1, type_.nbytes)], 2), replace(vectors(1, type_), argument_kinds=(kind,)))
    result = copy(number)
    assert (result.dtype, result.shape) == (dtype.numpy, ()) and result[()] == expected
    for other in (True, 1, 1.0, 1j, np.float64(1.0), np.int64(1), np.ones(()), "1", None):
        assert takes_slow_path(copy, other) == (type(other).__name__ != kind)


@pytest.mark.parametrize(("dtype", "number"), [(I8, 128), (I8, -129), (U8, -1), (U8, 256), (U64, -1), (I64, 2**63)])
def test_integers_that_do_not_fit_take_the_slow_path(bind: Callable[..., Any], dtype: DType, number: int) -> None:
    type_ = tensor(dtype, ())
    copy = bind(copy_bytes([(0, 1, type_.nbytes)], 2), replace(vectors(1, type_), argument_kinds=("int",)))
    assert takes_slow_path(copy, number)


def test_impossible_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a Python float cannot be passed as i64\[\]"):
        native("define i32 @bw_program(ptr %b, ptr %a) { ret i32 0 }", replace(vectors(1, tensor(I64)), argument_kinds=("float",)))


def test_nested_trees(bind: Callable[..., Any]) -> None:
    copy = bind(NESTED_TEXT, NESTED)
    result = copy(*nested_arguments())
    assert type(result) is list and list(result[0]) == ["w", "none", "größe b"]
    np.testing.assert_array_equal(result[0]["w"], Z)
    np.testing.assert_array_equal(result[0]["größe b"], X)
    assert result[0]["none"] is None and result[2] == {}
    assert result[1][0] == 1.5 and type(result[1][0]) is np.float64 and result[1][1] == ()
    np.testing.assert_array_equal(result[1][2][0], Y)
    result[2]["mine"] = result[1][2].append(1)
    assert copy(*nested_arguments())[2] == {}


class Dict(dict):  # type: ignore[type-arg]
    pass


class Hostile(str):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __hash__(self) -> int:
        return hash("w")


def test_other_structure_takes_the_slow_path(bind: Callable[..., Any]) -> None:
    copy = bind(NESTED_TEXT, NESTED)
    first, second = nested_arguments()
    for other in ([X, [Y, None]], (X, (Y, None)), (X, [Y]), (X, [Y, 0]), (X, [Y, None], X), X, None):
        assert takes_slow_path(copy, other, second)
    renamed = {"v" if key == "w" else key: value for key, value in second.items()}
    for mapping in (renamed, {**second, "more": X}, Dict(second), {}, {**second, "größe b": [1.5]}):
        assert takes_slow_path(copy, first, mapping)


def test_failing_comparison_of_keys_takes_the_slow_path() -> None:
    hostile = {Hostile("w"): Z, "größe b": (1.5,), "empty": []}
    assert takes_slow_path(native(NESTED_TEXT, NESTED), nested_arguments()[0], hostile)


def test_captured_arrays(bind: Callable[..., Any]) -> None:
    signature = replace(vectors(1), captured_types=(VECTOR,))
    executable_text, weights = sum_of(2), X.copy()
    add = bind(executable_text, signature, [weights])
    np.testing.assert_array_equal(add(Y), X + Y)
    weights += 1  # by reference
    np.testing.assert_array_equal(add(Y), X + Y + 1)
    with pytest.raises(ValueError, match="captured array 0 is not an array of type"):
        bind(executable_text, signature, [np.arange(10)[::2]])
    with pytest.raises(ValueError, match="0 captured arrays given, 1 expected"):
        bind(executable_text, signature)


def test_captured_arrays_of_any_layout_are_read_at_every_call(bind: Callable[..., Any]) -> None:
    signature = replace(vectors(1), captured_types=(VECTOR,))
    memory = np.arange(10.0)
    for weights in (memory[::2], memory[::-2], np.frombuffer(bytearray(81), np.uint8)[1:].view(np.float64)[:5]):
        add = bind(sum_of(2), signature, [weights])
        references = sys.getrefcount(weights)
        np.testing.assert_array_equal(add(Y), weights + Y)
        memory += 1.0
        np.testing.assert_array_equal(add(Y), weights + Y)
        assert sys.getrefcount(weights) == references
    both = Executable(sum_of(2), signature).form(raise_error, [memory[::2]])
    for other in (memory[:5], memory[5:0:-1], memory[::2]):
        np.testing.assert_array_equal(chain([both.over([other])], slow_path)(Y), other + Y)


def test_a_strided_captured_array_that_a_result_is_written_to_takes_the_slow_path() -> None:
    memory = np.zeros(10)
    signature = replace(vectors(1), captured_types=(VECTOR,), result_into=(0,))
    add = Executable(sum_of(2), signature).bind(slow_path, raise_error, [memory[::2]])
    assert takes_slow_path(add, memory[4:9])
    assert not takes_slow_path(add, np.zeros(5))


def test_one_executable_serves_many_closures_and_keeps_their_arrays() -> None:
    executable = Executable(sum_of(2), replace(vectors(1), captured_types=(VECTOR,)))
    functions = [executable.bind(slow_path, raise_error, [np.full(5, float(k))]) for k in range(20)]
    gc.collect()
    assert [function(X)[0] for function in functions] == list(range(20))


def test_static_values(bind: Callable[..., Any]) -> None:
    marker = object()
    signature = replace(vectors(1), arguments=(Static(0), Leaf(0), Container("dict", (Static(1), Static(2)), ("mode", "marker"))))
    copy = bind(copy_bytes([(0, 1, 40)], 2), signature, (), (1000, "full", marker))
    np.testing.assert_array_equal(copy(int("1000"), X, {"mode": "".join(["fu", "ll"]), "marker": marker}), X)
    for other in (1001, 1000.0, np.int64(1000), None):
        assert takes_slow_path(copy, other, X, {"mode": "full", "marker": marker})
    assert takes_slow_path(copy, 1000, X, {"mode": "same", "marker": marker})
    assert takes_slow_path(copy, 1000, X, {"mode": "full", "marker": object()})
    with pytest.raises(ValueError, match="0 static values given, 3 expected"):
        bind(copy_bytes([(0, 1, 40)], 2), signature)


@pytest.mark.parametrize(("static", "others"), [(0.0, (-0.0, 0, False)), (1, (True, 1.0)), (True, (1, 1.0)), (float("nan"), (1.0,))])
def test_static_values_are_compared_by_type_and_bits(bind: Callable[..., Any], static: Any, others: Any) -> None:
    copy = bind(copy_bytes([(0, 1, 40)], 2), replace(vectors(1), arguments=(Static(0), Leaf(0))), (), (static,))
    assert not takes_slow_path(copy, static, X)
    assert all(takes_slow_path(copy, other, X) for other in others)


INTO = replace(vectors(3), result_into=(2,))


def test_result_into_an_argument(bind: Callable[..., Any]) -> None:
    add = bind(program(4, loop(5, load(0) + load(1) + "  %s = fadd double %x0, %x1\n" + store(3, "%s"))), INTO)
    out = np.empty(5)
    assert add(X, Y, out) is out
    np.testing.assert_array_equal(out, X + Y)


def test_unusable_output_takes_the_slow_path() -> None:
    add = native(program(4, loop(5, load(0) + load(1) + "  %s = fadd double %x0, %x1\n" + store(3, "%s"))), INTO)
    frozen = np.empty(5)
    frozen.flags.writeable = False
    memory = np.arange(12.0)
    assert takes_slow_path(add, X, Y, frozen) and takes_slow_path(add, X, Y, np.empty(10)[::2])
    assert takes_slow_path(add, X, Y, np.zeros(41, np.uint8)[1:].view(np.float64))
    for start, overlaps in ((0, True), (1, True), (4, True), (5, False), (6, False)):
        out = memory[start : start + 5]
        assert takes_slow_path(add, memory[:5], Y, out) == takes_slow_path(add, Y, memory[:5], out) == overlaps
    captured = native(sum_of(2).replace("%p2", "%p3"), replace(INTO, arguments=(Leaf(0), Leaf(1)), argument_types=(VECTOR,) * 2,
                      argument_kinds=("array",) * 2, captured_types=(VECTOR,), result_into=(1,)), [memory[:5]])  # fmt: skip
    assert takes_slow_path(captured, X, memory[4:9])


def windows(memory: np.ndarray) -> Iterator[np.ndarray]:
    """Views of five elements, forwards, backwards and in steps."""
    for start in range(0, 12, 2):
        yield from (memory[start:start + 5], memory[start:start + 5][::-1], memory[start:start + 10:2], memory[start:start + 15:3][::-1])


def test_arrays_in_steps_reach_as_far_as_they_do(bind: Callable[..., Any]) -> None:
    add = bind(program(4, loop(5, load(0) + load(1) + "  %s = fadd double %x0, %x1\n" + store(3, "%s"))), INTO)
    memory, found = np.arange(28.0), set()
    for start in range(0, 24, 3):
        out = memory[start:start + 5]
        for other in windows(memory):
            overlaps = np.may_share_memory(out, other)
            assert takes_slow_path(add, other, Y, out) == takes_slow_path(add, Y, other, out) == overlaps
            found.add((other.strides, overlaps))
    assert len(found) == 8


def test_matrices_in_steps_reach_as_far_as_they_do(bind: Callable[..., Any]) -> None:
    matrix, memory = tensor(F64, (2, 3)), np.arange(40.0)
    signature = CallSignature(arguments=(Leaf(0), Leaf(1)), argument_types=(matrix, VECTOR), argument_kinds=("array",) * 2, result=Leaf(0),
                              result_types=(VECTOR,), result_kinds=("array",), result_into=(1,))
    copy = bind(copy_bytes([(0, 1, 40)], 2), signature)
    square = memory[8:32].reshape(4, 6)
    for part in (square[:2, :3], square[::2, ::2], square[::-2, ::-1][:, :3], square.T[::3, :3], square[2:, ::-2], square[1:3, 3:]):
        for start in range(0, 36, 2):
            out = memory[start:start + 5]
            assert takes_slow_path(copy, part, out) == np.may_share_memory(part, out), (part.strides, start)


def test_results_that_are_not_returned_are_written_all_the_same(bind: Callable[..., Any]) -> None:
    text = program(6, loop(5, load(0) + load(1) + "  %s = fadd double %x0, %x1\n" + store(5, "%s")) + "")
    signature = CallSignature(
        arguments=(Leaf(0), Leaf(1), Leaf(2)), argument_types=(VECTOR,) * 3, argument_kinds=("array",) * 3, captured_types=(VECTOR,),
        result=Leaf(0), result_types=(VECTOR,) * 2, result_kinds=("array",) * 2, result_into=(None, 2))
    add, out = bind(text, signature, [Z]), np.empty(5)
    references = sys.getrefcount(out)
    assert add(X, Y, out) is not out
    np.testing.assert_array_equal(out, X + Y)
    assert sys.getrefcount(out) == references


def test_slow_run_converts_copies_and_handles_overlap() -> None:
    run = Executable(sum_of(2), vectors(2)).form(raise_error).run
    for other in (LAYOUTS["strided"], OTHERS["byte-swapped"], OTHERS["dtype"], LAYOUTS["misaligned"], OTHERS["list"]):
        np.testing.assert_array_equal(run([X, other]), X + np.asarray(other))
    text = program(4, loop(5, load(0) + load(1) + "  %s = fadd double %x0, %x1\n" + store(3, "%s")))
    memory = np.arange(12.0)
    out = memory[1:6]
    assert Executable(text, INTO).form(raise_error).run([memory[:5], X, out]) is out
    np.testing.assert_array_equal(out, 2 * X)


# --- CompiledFunction, speed ------------------------------------------------------------------------------------------


class Function(CompiledFunction):
    """A compiled function."""

    def __init__(self, name: str) -> None:
        self.name = name


def test_compiled_function() -> None:
    first, second = Function("first"), Function("second")
    with pytest.raises(NotImplementedError, match="Function has no code installed"):
        first(X)
    first._install(native(sum_of(2), vectors(2)))
    second._install(lambda *args: args)
    assert first(X, Y)[1] == 11.0 and second(1, 2) == (1, 2)
    assert isinstance(first, Function) and (first.name, second.name, first.__doc__) == ("first", "second", Function.__doc__)
    second._install(native(sum_of(1), vectors(1)))
    assert second(Y)[1] == 10.0


def test_call_costs_less_than_a_microsecond() -> None:
    type_ = tensor(F64, (64,))
    arrays = [np.arange(64.0) for _ in range(3)]
    function = Function("fast")
    plain = native(sum_of(3, 64), vectors(3, type_))
    function._install(plain)
    unlocked = native(sum_of(3, 64), vectors(3, type_, release_gil=True))
    times = {}
    for name, call in (("builtin", plain), ("CompiledFunction", function), ("without GIL", unlocked)):
        timer = timeit.Timer("call(a, b, c)", globals={"call": call, **dict(zip("abc", arrays, strict=True))})
        times[name] = min(timer.repeat(number=20_000, repeat=5)) / 20_000 * 1e6
    print("us per call of 3 arrays of 64 f64:", {name: round(time, 3) for name, time in times.items()})
    assert max(times.values()) < 1.0, times
