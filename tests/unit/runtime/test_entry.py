"""The entry: the same calls through machine code and through `python_entry.py`: forms of calls, guards, results.

`test_entry_numbers.py`, `test_entry_buffers.py` and `test_entry_failures.py` go on.
"""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import timeit
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from bwcompiler.ir.contracts.call_signature import NOTHING, CallSignature, Container, Contents, Leaf, Read, Static
from bwcompiler.ir.types import DTYPES, F64, DType, tensor
from bwcompiler.runtime import executable, python_abi
from bwcompiler.runtime.executable import CompiledFunction, Executable, chain
from tests.unit.runtime.programs import (
    NESTED,
    NESTED_TEXT,
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


def test_attributes_that_are_not_there_are_guards(bind: Callable[..., Any]) -> None:
    config = Config()
    copy = bind(copy_bytes([(0, 1, 40)], 2), vectors(1), reads=[Read("attribute", config, name, NOTHING) for name in ("one", "other")])
    for name in ("other", "one"):
        assert not takes_slow_path(copy, X)
        setattr(config, name, None)
        assert takes_slow_path(copy, X)
        delattr(config, name)
    Config.one = 1.0                               # type: ignore[attr-defined]
    assert takes_slow_path(copy, X)
    del Config.one                                 # type: ignore[attr-defined]
    before = sys.getrefcount(config)
    assert not any(takes_slow_path(copy, X) for _ in range(20)) and sys.getrefcount(config) == before


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


class Pair(NamedTuple):
    left: Any
    right: Any


class Other(NamedTuple):
    left: Any
    right: Any


class Checked(Pair):
    __slots__ = ()

    def __new__(cls, left: Any, right: Any) -> Checked:
        if left[0] < 0:
            raise ValueError("negative")
        return super().__new__(cls, left, right)


def _pairs(cls: type) -> CallSignature:
    """Of a pair and a pair in it: the first two leaves, and a pair of these."""
    argument = Container("tuple", (Leaf(0), Container("tuple", (Leaf(1), Container("none")), cls=Other)), cls=cls)
    result = Container("tuple", (Leaf(0), Container("list", (Leaf(1),))), cls=cls)
    return replace(vectors(2), arguments=(argument,), result=result, result_types=(VECTOR, VECTOR), result_kinds=("array", "array"))


def test_named_tuples(bind: Callable[..., Any]) -> None:
    copy = bind(copy_bytes([(0, 2, 40), (1, 3, 40)], 4), _pairs(Pair))
    for _ in range(3):
        result = copy(Pair(X, Other(Y, None)))
        assert type(result) is Pair and type(result.right) is list
        np.testing.assert_array_equal(result.left, X)
        np.testing.assert_array_equal(result.right[0], Y)
    for other in ((X, Other(Y, None)), Other(X, Other(Y, None)), Pair(X, (Y, None)), Pair(X, Pair(Y, None)), Pair(X, Other(Y, 1)), [X, Y], Pair):
        assert takes_slow_path(copy, other)


def test_classes_of_named_tuples_may_raise(bind: Callable[..., Any]) -> None:
    copy = bind(copy_bytes([(0, 2, 40), (1, 3, 40)], 4), _pairs(Checked))
    assert type(copy(Checked(X, Other(Y, None)))) is Checked
    negative = Checked(X - X[0] + 1, Other(Y, None))
    negative.left[0] = -1.0
    before = sys.getrefcount(negative.left), sys.getrefcount(Checked)
    for _ in range(20):
        with pytest.raises(ValueError, match="negative"):
            copy(negative)
    assert (sys.getrefcount(negative.left), sys.getrefcount(Checked)) == before


def test_keys_of_dicts_are_texts_and_integers_in_one_order(bind: Callable[..., Any]) -> None:
    first = bind(copy_bytes([(0, 1, 40)], 2), replace(vectors(1), arguments=(Container("dict", (Leaf(0), Container("none")), (7, "name")),)))
    made = "".join(["na", "me"])                               # not the very same text
    np.testing.assert_array_equal(first({7: X, made: None}), X)
    big = 10 ** 30
    np.testing.assert_array_equal(bind(copy_bytes([(0, 1, 40)], 2), replace(
        vectors(1), arguments=(Container("dict", (Leaf(0),), (big,)),)))({10 ** 29 * 10: X}), X)
    for other in ({"name": None, 7: X}, {7.0: X, "name": None}, {7: X}, {7: X, "name": None, 8: None}, {8: X, "name": None}, {}):
        assert takes_slow_path(first, other)
    truth = bind(copy_bytes([(0, 1, 40)], 2), replace(vectors(1), arguments=(Container("dict", (Leaf(0),), (1,)),)))
    assert takes_slow_path(truth, {True: X}) and not takes_slow_path(truth, {1: X})


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
    for mapping in (renamed, dict(reversed(second.items())), {**second, "more": X}, Dict(second), {}, {**second, "größe b": [1.5]}):
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


@pytest.mark.parametrize(("static", "others"), [(0.0, (-0.0, 0, False)), (1, (True, 1.0)), (True, (1, 1.0)), (float("nan"), (1.0,)),
                                                 ((1, ("a", 0.0)), ((1.0, ("a", 0.0)), (1, ("a", -0.0)), (1, ["a", 0.0]), (1,), ()))])
def test_static_values_are_compared_by_type_and_bits(bind: Callable[..., Any], static: Any, others: Any) -> None:
    copy = bind(copy_bytes([(0, 1, 40)], 2), replace(vectors(1), arguments=(Static(0), Leaf(0))), (), (static,))
    assert not takes_slow_path(copy, static, X) and not takes_slow_path(copy, pickle.loads(pickle.dumps(static)), X)
    assert all(takes_slow_path(copy, other, X) for other in others)


def test_arrays_that_are_compiled_in(bind: Callable[..., Any]) -> None:
    """They are compared by what they hold, whoever's memory that is; the entry keeps a copy of its own."""
    known = np.array([[1, 2, 3], [4, 5, 6]])
    copy = bind(copy_bytes([(0, 1, 40)], 2), replace(vectors(1), arguments=(Static(0), Leaf(0))), (), (Contents(known),))
    np.testing.assert_array_equal(copy(known, X), X)
    assert not takes_slow_path(copy, known.copy(), X)
    others = (known + (known == 6), known.astype(np.int32), known[:1], known.reshape(3, 2), known[:, ::-1], np.asfortranarray(known),
              known.astype(">i8"), known.view(np.uint64), known.tolist(), known.view(np.matrix), None)
    assert all(takes_slow_path(copy, other, X) for other in others)
    known[1, 2] = 0
    assert takes_slow_path(copy, known, X)
    known[1, 2] = 6
    assert not takes_slow_path(copy, known, X)


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
        times[name] = min(timer.repeat(number=500, repeat=200)) / 500 * 1e6         # short ones: other processes may run
    print("us per call of 3 arrays of 64 f64:", {name: round(time, 3) for name, time in times.items()})
    assert max(times.values()) < 1.0, times


def test_what_builtins_point_to_outlives_all_modules() -> None:
    """When the interpreter ends, modules go before the functions that others hold, which read it when they die."""
    definition = weakref.ref(executable._definition.__wrapped__("short"))  # type: ignore[attr-defined]
    gc.collect()
    assert definition() is not None


def test_code_and_defaults_are_pointers_in_a_function() -> None:
    def function(x: int = 1, *, y: int = 2) -> None: ...

    slots = python_abi.function_slots()
    assert set(slots) == {"__code__", "__defaults__", "__kwdefaults__"}
    for name, offset in slots.items():
        assert ctypes.c_size_t.from_address(id(function) + offset).value == id(getattr(function, name))
