"""Matrix products as native code: exact numbers for all sizes around the borders of tiles, the order of sums, and what is not touched."""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler import called_code, products
from bwcompiler.compiler.pipeline import lower
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.extent import Index
from bwcompiler.ir.types import DType, dtype_named, dtype_of
from bwcompiler.lowering.products.call import POLL_WORK, Named, Shape, named, needs_of, symbol
from bwcompiler.lowering.products.parts import ALWAYS, CONTROL, CUTTING, ROWS, RUNTIME, TURNING, VECTORS, later_for, parts_for
from bwcompiler.lowering.products.routine import BLOCK, TABLE, Tiling
from bwcompiler.lowering.products.vectors import LANES
from bwcompiler.runtime import threads
from bwcompiler.runtime.compiled_once import CompiledOnce
from bwcompiler.target import Target
from tests.support.targets import HOST, TARGETS, narrowest, with_fma

Array = np.ndarray[Any, Any]
BACKGROUND = "background"
FLOATS = ("f32", "f64")
DTYPES = (*FLOATS, "c64", "c128")
# Products of complex numbers are those of floats, packed in another way: two targets do.
ON_TARGETS = [pytest.param(target, dtype, id=f"{target}-{dtype}") for target in TARGETS.values() for dtype in DTYPES
              if dtype in FLOATS or target in (HOST, narrowest())]
LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "plain": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "sliced": lambda x: np.pad(x, [*[(0, 0)] * (x.ndim - 2), (1, 2), (2, 3)])[..., 1:-2, 2:-3],
    "strided": lambda x: x.repeat(2, -2).repeat(3, -1)[..., ::2, ::3],
    "flipped": lambda x: x[..., ::-1, ::-1].copy()[..., ::-1, ::-1],
    "columns flipped": lambda x: np.asfortranarray(x[..., ::-1, :])[..., ::-1, :],
}


def told(a: Array, b: Array, c: Array, adds: bool = False, ready: bool = False) -> list[Any]:
    """What products are told: where the matrices begin, and words (`products.call.WORDS`)."""
    size = a.itemsize
    strides = [step // size for step in (*a.strides[-2:], *b.strides[-2:], c.strides[-2])]
    axes = [(extent, *[x.strides[k] // size for x in (a, b, c)]) for k, extent in enumerate(c.shape[:-2])]
    words = [*c.shape[-2:], a.shape[-1], *strides, int(adds), int(ready), len(axes), *itertools.chain(*axes)]
    return [*[x.__array_interface__["data"][0] for x in (a, b, c)], (ctypes.c_int64 * len(words))(*words)]


PRODUCT = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)


def multiply(a: Array, b: Array, target: Target = HOST, address: int | None = None) -> Array:
    """The product of two arrays, with nan around its rows, which must stay."""
    dtype = dtype_of(a.dtype)
    function = PRODUCT(address or products.address(dtype, target))
    *batch, m, n = (*a.shape[:-1], b.shape[-1])
    whole = np.full((*batch, m, n + 4) if n != 1 else (*batch, m + 4, 1), np.nan, a.dtype)
    inside = (..., slice(2, -2)) if n != 1 else (..., slice(2, -2), slice(None))
    assert function(*told(a, b, whole[inside])) == 0
    result = whole[inside].copy()
    whole[inside] = np.nan
    assert np.isnan(whole).all()
    return result


def integers(rng: np.random.Generator, *shape: int, dtype: str) -> Array:
    found = rng.integers(-9, 10, shape).astype(dtype_named(dtype).numpy)
    return found + 1j * rng.integers(-9, 10, shape).astype(found.real.dtype) if dtype[0] == "c" else found


def normal(rng: np.random.Generator, *shape: int, dtype: str) -> Array:
    return (integers(rng, *shape, dtype=dtype) * rng.standard_normal(shape)).astype(dtype_named(dtype).numpy)


def check(a: Array, b: Array, target: Target, what: object = "") -> None:
    wide = "c16" if a.dtype.kind == "c" else "f8"
    np.testing.assert_array_equal(multiply(a, b, target), (a.astype(wide) @ b.astype(wide)).astype(a.dtype), f"{target} {what}")


@pytest.mark.parametrize("target, dtype", ON_TARGETS)
def test_all_sizes_are_exact(target, dtype, rng):
    """Rows, columns and terms around multiples of a tile, of a vector and of a block; layouts take turns."""
    tiling = Tiling.of(dtype_named(dtype), target)
    rows = sorted({1, 2, 3, 4, 5, 7, *[k * tiling.height + d for k in (1, 2, 3) for d in (-1, 0, 1)]})
    columns = sorted({1, 2, 3, *[k * tiling.lanes + d for k in (1, 2, 3, 4) for d in (-1, 0, 1) if k * tiling.lanes + d]})
    terms = sorted({1, 2, 5, tiling.lanes - 1, tiling.lanes, LANES, LANES + 1, BLOCK + 3})
    layouts = itertools.cycle(itertools.product(LAYOUTS, LAYOUTS))
    if dtype[0] == "c":                                                 # the same tiles
        rows, columns, terms = rows[::3], columns[::2], terms[::2]
    for m, n, k in itertools.product(rows, columns, [extent for extent in terms if extent]):
        left, right = next(layouts)
        a, b = LAYOUTS[left](integers(rng, m, k, dtype=dtype)), LAYOUTS[right](integers(rng, k, n, dtype=dtype))
        check(a, b, target, (m, n, k, left, right))


@pytest.mark.parametrize("target, dtype", ON_TARGETS)
def test_products_are_added_to_what_is_there(target, dtype, rng):
    """Of vectors too, and of no terms."""
    function = PRODUCT(products.address(dtype_named(dtype), target))
    for m, n, k in itertools.product((1, 3, 30), (1, 5, 40), (0, 1, 4, BLOCK + 3)):
        a, b, c = [integers(rng, *shape, dtype=dtype) for shape in ((m, k), (k, n), (m, n))]
        wanted = c + a @ b
        assert function(*told(a, b, c, adds=True)) == 0
        np.testing.assert_array_equal(c, wanted, f"{(m, n, k)}")


@pytest.mark.parametrize("target, dtype", [param for param in ON_TARGETS if param.values[1] in FLOATS])
def test_matrices_that_are_put_ready_are_read_where_they_lie(target, dtype, rng):
    """To the end of a vector, behind the elements, where there may be anything."""
    function = PRODUCT(products.address(dtype_named(dtype), target))
    for m, n, k in itertools.product((1, 2, 15, 200), (1, 2, 9, 31, 33, 70), (1, 7, BLOCK + 3)):
        a, b, c = integers(rng, m, k, dtype=dtype), integers(rng, k, n, dtype=dtype), np.full((m, n), np.nan, dtype_named(dtype).numpy)
        side = 64 // c.itemsize
        ready = np.full((k + 1, (-(-n // side) | 1) * side + 2 * side), np.nan, c.dtype)
        ready[:k, :n] = b
        assert function(*told(a, ready[:k, :n], c, ready=True)) == 0
        np.testing.assert_array_equal(c, a @ b, f"{(m, n, k)}")


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_all_numbers_of_rows_are_exact(target, rng):
    """Rows are cut into tiles in many ways, and there are not tiles of all heights."""
    tiling = Tiling.of(dtype_named("f64"), target)
    for m in range(1, 3 * tiling.height + 1):
        check(integers(rng, m, 5, dtype="f64"), integers(rng, 5, tiling.columns + 1, dtype="f64"), target, m)


def test_rows_are_cut_into_few_tiles_of_like_height():
    tiling = Tiling(dtype_named("f64"), 8, 14, True, True)
    heights = tiling.first_heights()

    def cut(rows: int) -> list[int]:
        found = []
        while rows:
            found.append(heights[rows] if rows < len(heights) else tiling.height)
            rows -= found[-1]
        return found

    assert [tiling.heights_for(rows) for rows in (64, 112, 256, 1024)] == [{14, 11}, {14}, {14, 4}, {14, 2}]

    assert [cut(rows) for rows in (7, 8, 11, 13, 14, 15, 22, 64)] == [
        [7], [4, 4], [11], [7, 6], [14], [11, 4], [11, 11], [14, 14, 14, 11, 11]]
    for rows in range(1, 200):
        assert {*cut(rows)} <= {*tiling.heights} and sum(cut(rows)) == rows


@pytest.fixture
def named_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the background, in threads that can be waited for."""
    monkeypatch.setattr(products, "in_background", lambda work: threading.Thread(target=work, name=BACKGROUND).start())


def wait_for_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == BACKGROUND:
            thread.join()


def begun(monkeypatch: pytest.MonkeyPatch, function: Any, *arrays: Array) -> tuple[list[tuple[str, str, str]], frozenset[str]]:
    """What threads compile for a program, as (thread, dtype, part), and the names of the products that it calls."""
    compiled: list[tuple[str, str, str]] = []
    monkeypatch.setattr(products, "products", functools.cache(products.products.__wrapped__))
    monkeypatch.setattr(products, "_code", lambda dtype, target, name: compiled.append((threading.current_thread().name, dtype.name, name)) or b"")
    lowered = lower(trace(function, arrays).graph, target=HOST)
    for _ in range(2):
        called_code.begin(lowered.graph, HOST)
        products.begin_named(lowered.program.symbols, HOST)
    wait_for_threads()
    return sorted(compiled), frozenset([name for name in lowered.program.symbols if named(name)])


@pytest.mark.usefixtures("named_threads")
def test_the_code_is_compiled_in_threads_while_programs_are_made(monkeypatch):
    """Each part once, and the tiles that the sizes need."""
    compiled, called = begun(monkeypatch, lambda a, b: np.tanh(a @ b) @ b, np.ones((64, 64)), np.ones((64, 64)))
    tiles = parts_for(Named(dtype_named("f64"), ("64x64",), True), HOST)
    assert called == {"bw_product_alone_f64.64x64.long"} and 0 < len(tiles) < 4
    assert compiled == sorted([(BACKGROUND, "f64", name) for name in (CONTROL, ROWS, *tiles)])


@pytest.mark.usefixtures("named_threads")
def test_small_products_need_none(monkeypatch):
    assert begun(monkeypatch, lambda a: a @ a, np.ones((2, 2))) == ([], frozenset())


@pytest.mark.usefixtures("named_threads")
def test_products_with_vectors_need_no_tiles(monkeypatch):
    compiled, called = begun(monkeypatch, lambda a, x: a @ x, np.ones((40, 50), np.float32), np.ones(50, np.float32))
    assert called == {"bw_product_alone_f32.vector"}
    assert [part for _, _, part in compiled] == sorted([CONTROL, ROWS, VECTORS])


@pytest.mark.usefixtures("named_threads")
@pytest.mark.parametrize("settles", [False, True], ids=["thread", "fork"])
def test_what_a_first_call_can_do_without_comes_later(settles, monkeypatch, rng):
    """The numbers are the same before and after; a fork waits, as a child would never have it."""
    made, waits, compile_ = products.Products(dtype_named("f64"), HOST), threading.Event(), products._code
    monkeypatch.setattr(products, "_code", lambda dtype, target, name: (name == TURNING and not waits.wait(60)) or compile_(dtype, target, name))
    product = Named(dtype_named("f64"), ("20x64", "turned", "large"), True)
    assert later_for(product) == (TURNING, RUNTIME)
    tiles = [name for name in parts_for(product, HOST) if name not in later_for(product)]
    address = made.entries([*ALWAYS, *tiles], [TURNING])[symbol(dtype_named("f64"), alone=True)]
    table = Tiling.of(dtype_named("f64"), HOST).table
    turns = (ctypes.c_void_p * len(table)).from_address(made.loaded[TABLE])
    a, b = normal(rng, 20, 33, dtype="f64"), LAYOUTS["transposed"](normal(rng, 33, 64, dtype="f64"))
    before = multiply(a, b, address=address)
    assert turns[table.index("pack.turned.1")] is None and made.awaited == {TURNING}
    waits.set()
    if settles:
        made.settle()
    wait_for_threads()
    assert turns[table.index("pack.turned.1")] is not None and not made.awaited
    np.testing.assert_array_equal(before, multiply(a, b, address=address))


@pytest.mark.usefixtures("named_threads")
def test_what_another_program_needs_at_once_is_loaded_once(monkeypatch):
    """A program that waits for a module, while others run without it, puts it into the table."""
    made, waits, loaded = products.Products(dtype_named("f32"), HOST), threading.Event(), list[bool]()
    compile_, load_ = CompiledOnce.code, products.jit.load_for_ever

    def code(part: CompiledOnce) -> bytes:
        assert threading.current_thread().name != BACKGROUND or waits.wait(60)
        return compile_(part)

    monkeypatch.setattr(CompiledOnce, "code", code)
    monkeypatch.setattr(products.jit, "load_for_ever", lambda *told: loaded.append("pack.turned.1" in told[2]) or load_(*told))
    made.entries(ALWAYS, [TURNING])
    assert made.awaited == {TURNING} and not any(loaded)
    made.entries([*ALWAYS, TURNING])
    assert not made.awaited and sum(loaded) == 1
    waits.set()
    wait_for_threads()
    assert sum(loaded) == 1


def test_long_products_wait_for_all():
    assert later_for(Named(dtype_named("f32"), ("512x512", "turned", "large", "huge"), False)) == (TURNING,)
    assert later_for(Named(dtype_named("f32"), ("4096x4096", "turned", "large", "huge", "many"), False)) == ()
    assert later_for(Named(dtype_named("f32"), (), False)) == ()                     # nobody knows how long it is


def test_names_of_products_say_what_they_need():
    for dtype, needs, alone in itertools.product(DTYPES, ((), ("vector", "large"), ("3x1000", "turned")), (False, True)):
        assert named(symbol(dtype_named(dtype), needs, alone)) == (dtype_named(dtype), needs, alone)
    assert named("bw_product") is None and named("bw_products_f64") is None


@pytest.mark.parametrize(("shape", "more", "needs"), [
    (Shape(3, 4, 5, (5, 1), (4, 1), 4), {}, ("3x4", "long")),
    (Shape(3, 4, 5, (1, 3), (4, 1), 4), {}, ("3x4",)),
    (Shape(3, 4, 5, (1, 3), (1, 5), 4), {}, ("3x4", "turned")),
    (Shape(3, 4, 512, (512, 1), (4, 1), 4), {}, ("3x4", "turned")),                   # rows that fall into one set of the cache
    (Shape(3, 4, 512, (512, 1), (4, 1), 4), {"matrices": 200}, ("3x4", "turned", "large")),
    (Shape(3, 4, 512, (512, 1), (4, 1), 4), {"matrices": 200, "alone": True}, ("3x4", "turned")),
    (Shape(512, 512, 512, (1, 512), (512, 1), 512), {}, ("512x512", "large", "huge")),
    (Shape(3, 4, 1 << 19, (1, 3), (1, 1 << 19), 4), {}, ("3x4", "turned", "large")),
    (Shape(3, 5, 1 << 19, (1, 3), (1, 1 << 19), 5), {}, ("3x5", "turned", "large", "many")),
    (Shape(3, 1, 5, (5, 1), (1, 1), 1), {}, ("vector",)),
    (Shape(1, 4, 5, (9, 9), (1, 5), 4), {}, ("vector",)),
    (Shape(3, 1, 5, (5, 1), (1, 1), 1), {"adds": True}, ("3x1", "long")),
    (Shape(3, 1, 5, (5, 2), (1, 1), 1), {}, ("3x1",)),                                # strided
    (Shape(3, 1, 5, (5, 1), (1, 1), 7), {}, ("3x1", "long")),
    (Shape(Index(0, 9).extent(), 4, 5, (5, 1), (4, 1), 4), {}, ()),
    (Shape(3, 1, 5, (Index(0, 9).extent(), 5), (1, 1), 1), {}, ())])
def test_what_products_need(shape, more, needs):
    assert needs_of(shape, dtype_named("f64"), **more) == needs


def test_complex_products_are_four_real_ones():
    assert needs_of(Shape(64, 64, 64, (64, 1), (64, 1), 64), dtype_named("c128")) == ("64x64", "turned", "large")


def products_of(dtype: str, target: Target) -> products.Products:
    """Products of any sizes, without any tiles."""
    made = products.Products(dtype_named(dtype), target)
    made.entries([*ALWAYS, CUTTING, RUNTIME])
    return made


@pytest.mark.parametrize("target, dtype", ON_TARGETS)
def test_sizes_need_the_tiles_that_they_take(target, dtype):
    """All of them and no others: what is called is written down, and computes nothing."""
    taken: set[str] = set()
    tiling, made = Tiling.of(dtype_named(dtype), target), products_of(dtype, target)
    functions = [ctypes.CFUNCTYPE(None)(functools.partial(taken.add, name)) for name in tiling.table]
    table = (ctypes.c_void_p * len(functions)).from_address(made.loaded[TABLE])
    for number, function in enumerate(functions):
        if tiling.table[number].startswith("tile"):
            table[number] = ctypes.cast(function, ctypes.c_void_p).value
    rows = [*range(2, 3 * tiling.height + 2), *[k * tiling.height + d for k in (7, 16, 17, 33, 150) for d in (0, 1, 5)]]
    columns = [2, tiling.lanes + 1, tiling.columns, 3 * tiling.columns + 1, 12 * tiling.columns - 1, 15 * tiling.columns]
    for m, n in zip(rows, itertools.cycle(columns), strict=False):
        a, b = [np.ones(shape, dtype_named(dtype).numpy) for shape in ((m, 9), (9, n))]
        taken.clear()
        multiply(a, b, address=made.loaded[symbol(dtype_named(dtype))])
        assert sorted(taken) == sorted(parts_for(Named(dtype_named(dtype), (f"{m}x{n}",), True), target)), (m, n)


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_a_tile_is_missing_numbers_are_the_same(dtype, rng):
    """Bit by bit."""
    plain = products_of(dtype, HOST).loaded[symbol(dtype_named(dtype))]
    for m, n, k in ((2, 3, 5), (33, 70, BLOCK + 3), (300, 9, 17)):
        a, b = normal(rng, m, k, dtype=dtype), normal(rng, k, n, dtype=dtype)
        assert multiply(a, b, address=plain).tobytes() == multiply(a, b).tobytes()


@pytest.mark.parametrize("target, dtype", ON_TARGETS)
def test_all_layouts_are_exact(target, dtype, rng):
    """Those that are packed and those that are not, larger than all blocks."""
    large, shapes = [(150, 33, 2 * BLOCK + 7), (5, 600, BLOCK + 1)], [(130, 300, 33), (1, 90, 300), (90, 1, 300), (3000, 1, 9)]
    for number, (left, right) in enumerate(itertools.product(LAYOUTS, LAYOUTS)):
        for m, n, k in (*large[number % 6:][:1], shapes[number % 4], shapes[(number // 6) % 4]):
            a, b = LAYOUTS[left](integers(rng, m, k, dtype=dtype)), LAYOUTS[right](integers(rng, k, n, dtype=dtype))
            check(a, b, target, (m, n, k, left, right))


@pytest.mark.parametrize("target, dtype", ON_TARGETS)
def test_rows_that_fall_into_one_set_of_a_cache_are_exact(target, dtype, rng):
    """They are packed where few columns are multiplied with them."""
    k = 4096 // dtype_named(dtype).itemsize
    for m, n in ((17, 200), (31, 3), (5, 70)):
        check(integers(rng, m, k, dtype=dtype), integers(rng, k, n, dtype=dtype), target, m)


@pytest.mark.parametrize("target, dtype", ON_TARGETS)
def test_batches_and_broadcast_operands(target, dtype, rng):
    a, b = integers(rng, 3, 2, 5, 7, 9, dtype=dtype), integers(rng, 2, 9, 11, dtype=dtype)
    check(a.transpose(1, 0, 2, 3, 4), np.broadcast_to(b[:, None, None], (2, 3, 5, 9, 11)), target)
    check(np.broadcast_to(a[0, 0, 0, :1], (6, 9)), b[0], target)
    check(a[0, 0, 0], np.broadcast_to(b[0, :, :1], (9, 40)), target)
    check(np.broadcast_to(a[0, 0, 0, :1, :1], (20, 9)), np.broadcast_to(b[0, :1, :1], (9, 20)), target)
    check(integers(rng, 400, 1, 64, dtype=dtype), integers(rng, 400, 64, 60, dtype=dtype), target)            # cut into matrices


def test_what_is_empty(rng):
    for m, n, k in itertools.product((0, 3), (0, 40), (0, 5)):
        check(np.ones((m, k)), np.ones((k, n)), HOST)
    check(np.ones((0, 3, 4)), np.ones((0, 4, 3)), HOST)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_not_numbers_stay_in_their_rows_and_columns(target, dtype, rng):
    """What lies around the operands, and what pads them, meets no result; 0 times inf is nan, and a sum of -0 is 0."""
    for m, n, k in ((1, 5, 7), (5, 1, 7), (17, 37, 9), (3, 3, 40), (60, 150, 20)):
        around = [np.full((m + 2, k + 2), np.nan), np.full((k + 2, n + 2), np.inf)]
        a, b = [x.astype(dtype_named(dtype).numpy)[1:-1, 1:-1] for x in around]
        a[...], b[...] = rng.integers(1, 9, (m, k)), rng.integers(1, 9, (k, n))
        check(a, b, target)
        check(np.asfortranarray(a), np.asfortranarray(b), target)
        a[m // 2, k // 2] = np.inf
        b[k // 2, 0], b[0, n - 1] = 0, -np.inf
        with np.errstate(invalid="ignore"):
            check(a, b, target)
        zeros = multiply(-0.0 * np.ones((m, k), a.dtype), np.ones((k, n), a.dtype), target)
        assert not zeros.any() and not np.signbit(zeros).any()


# ----- bits
def summed(a: Array, b: Array) -> float:
    """One element as the design says: blocks of terms that are added one after the other, each with one rounding."""
    round_ = np.float32 if a.dtype == np.float32 else np.float64
    result = Fraction(0)
    for block in range(0, len(a), BLOCK):
        total = Fraction(0)
        for x, y in zip(a[block:block + BLOCK], b[block:block + BLOCK], strict=True):
            total = Fraction(float(rounded(Fraction(float(x)) * Fraction(float(y)) + total, round_)))
        result = Fraction(float(rounded(result + total, round_)))
    return float(result)


def rounded(number: Fraction, type_: Any) -> Any:
    """To the nearest float: of a float32 that of the two around a float64 which is nearer."""
    near = float(number)
    if type_ is np.float64:
        return near
    candidates = [np.float32(near), np.nextafter(np.float32(near), np.float32(np.inf)), np.nextafter(np.float32(near), np.float32(-np.inf))]
    return min(candidates, key=lambda x: (abs(Fraction(float(x)) - number), x.view(np.int32) & 1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_order_of_sums(dtype, rng):
    if not HOST.has_fma:
        pytest.skip("a CPU without fused multiply-add")
    a, b = [rng.standard_normal(shape).astype(dtype_named(dtype).numpy) for shape in ((15, 2 * BLOCK + 9), (2 * BLOCK + 9, 35))]
    found = multiply(a, b)
    for i, j in ((0, 0), (14, 34), (7, 16)):
        assert found[i, j] == summed(a[i], b[:, j])
    column = multiply(np.asfortranarray(a), np.ascontiguousarray(b[:, 3:4]))       # a product with a vector along columns is no other sum
    np.testing.assert_array_equal(column[:, 0], found[:, 3])


@pytest.fixture
def any_threads() -> Iterator[None]:
    before = bw.get_num_threads()
    yield
    bw.set_num_threads(before)


SHAPES = ((300, 500, 300), (2000, 40, 70), (33, 1500, 64), (1, 4000, 600), (4000, 1, 600), (64, 64, 3000))


@pytest.mark.usefixtures("any_threads")
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_those_of_the_product(dtype, rng):
    """Not of the number of threads, of who computes, of the layout (but in products with vectors), or of the width of vectors."""
    for m, n, k in SHAPES:
        a, b = normal(rng, m, k, dtype=dtype), normal(rng, k, n, dtype=dtype)
        bw.set_num_threads(1)
        expected = multiply(a, b).tobytes()
        for count in (2, 3):
            bw.set_num_threads(count)
            for rest in (0, 2**62):
                threads.pool().rest_until(rest)
                assert multiply(a, b).tobytes() == expected
            threads.pool().wake_up()
        for target in with_fma().values() if HOST.has_fma and dtype in FLOATS else ():
            assert multiply(a, b, target).tobytes() == expected, target
        if min(m, n) > 1:
            assert multiply(np.asfortranarray(a), b).tobytes() == multiply(a, np.asfortranarray(b)).tobytes() == expected


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("target", with_fma().values(), ids=str)
def test_vectors_along_rows_have_the_same_bits_for_all_widths(target, dtype, rng):
    a, x = [rng.standard_normal(shape).astype(dtype_named(dtype).numpy) for shape in ((9, 333), (333, 1))]
    if HOST.has_fma:
        np.testing.assert_array_equal(multiply(a, x, target), multiply(a, x))
    spread = x.repeat(5, 0)[::5]
    np.testing.assert_array_equal(multiply(a, spread, target), multiply(a, x, target))


# ----- memory and signals
MALLOC, FREE = ctypes.CDLL(None).malloc, ctypes.CDLL(None).free


def load(dtype: DType, **symbols: Any) -> int:
    """Products with other functions around them; their address."""
    known = {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in symbols.items()}
    return products.Products(dtype, HOST, **known).entries([*ALWAYS, *parts_for(Named(dtype, (), False), HOST)])[symbol(dtype)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_there_is_no_memory_blocks_are_small(dtype, rng):
    """Nothing fails: what is packed fits into the stack."""
    asked: list[int] = []
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(lambda size: asked.append(size))
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda pointer: asked.append(-1))
    address = load(dtype_named(dtype), bw_memory_take=take, bw_memory_give=give)
    bw_threads = bw.get_num_threads()
    bw.set_num_threads(1)
    for m, n, k in ((100, 300, 2 * BLOCK), (1, 100, 20000), (100, 1, 20000)):
        a, b = integers(rng, m, k, dtype=dtype), LAYOUTS["strided"](integers(rng, k, n, dtype=dtype))
        np.testing.assert_array_equal(multiply(a, b, address=address), multiply(a, b))
    bw.set_num_threads(bw_threads)
    assert asked and min(asked) > 0                                    # nothing was given back


def test_memory_is_given_back(rng):
    """And a product that was interrupted gives it back, too."""
    taken: list[int] = []
    memory = np.zeros(1 << 22, np.uint8)
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(lambda size: taken.append(1) or memory.ctypes.data)
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda pointer: taken.append(-1))
    looks: list[int] = []
    poll = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: looks.append(1) or (4 if len(looks) > 2 else 0))
    address = load(dtype_named("f64"), bw_memory_take=take, bw_memory_give=give, bw_poll=poll)
    function = PRODUCT(address)
    before = bw.get_num_threads()
    bw.set_num_threads(1)
    for size, status in ((200, 0), (700, 4)):
        a, c = rng.standard_normal((size, size)), np.zeros((size, size))
        assert function(*told(a, a, c)) == status
        assert sum(taken) == 0 and taken
    bw.set_num_threads(before)
    assert 200**3 < POLL_WORK < 700**3 and len(looks) == 3


@pytest.mark.parametrize("dtype", FLOATS)
def test_other_registers(dtype, rng, monkeypatch):
    """32 registers of 128 bits and no masks, as other CPUs have them: rows of tiles fill many vectors."""
    narrow = Tiling.of(dtype_named(dtype), Target.parse("host@128"))
    monkeypatch.setattr(Tiling, "of", lambda dtype, target: narrow._replace(height=14, masks=False))
    address = load(dtype_named(dtype), bw_memory_take=MALLOC, bw_memory_give=FREE)
    for m, n, k in itertools.product((1, 13, 14, 31), (1, 5, 8, 9), (3, 4, 33)):
        for layout in LAYOUTS.values():
            a, b = layout(integers(rng, m, k, dtype=dtype)), layout(integers(rng, k, n, dtype=dtype))
            np.testing.assert_array_equal(multiply(a, b, address=address), a @ b)
