"""BLAS calls of factorisations, in LLVM text: small calls run in one thread, large ones are divided among the pool (`pool/thread_pool.py`).

OpenBLAS uses several threads from 64 x 64 x 64 on, and its threads spin: if they do not get a CPU at once, a product of 40 us takes
milliseconds.  So it runs with one thread inside programs, and with its own number outside of them (NumPy's products): the
number is set around each call, which costs 20 ns.

    bw_dgemm and so on        the signatures of `cblas_dgemm` (row-major) and of LAPACK's `dgetrf`
        gemm           is divided by the rows of the result, or its columns if these are more, from LEAST_WORK multiplications on
        trsm           is divided by right-hand sides, from LEAST_WORK multiplications on
        trsv           is not divided
        getrf          is not divided, and uses the library's own threads from LEAST_BLAS_THREADS (n³) on
    bw_blas_enter, bw_blas_leave   NumPy's loops around LAPACK are called between them (`lowering/libraries/inner_loops.py`)

Libraries whose number of threads cannot be set are called as they are.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping

from bwcompiler.ir.contracts.program_interface import BLAS_ENTER, BLAS_LEAVE, LEAST_BLAS_THREADS
from bwcompiler.locks import in_forked_child, once
from bwcompiler.runtime import jit, object_cache, threads
from bwcompiler.runtime.addresses import blas
from bwcompiler.runtime.locks_and_clocks import spin_lock
from bwcompiler.target import default_target
from bwcompiler.uninterrupted import in_background

LEAST_WORK = 2**23
PART_WORK = 2**22              # least multiplications of a part
PART_EXTENT = 64               # least rows, columns, right-hand sides or elements of a part: the other operand is packed for each part

_ARGUMENTS = {                 # I: the library's integers; T: scalars of the type, pointers to them for complex ones
    "gemm": "i32 order, i32 ta, i32 tb, I m, I n, I k, T alpha, ptr a, I lda, ptr b, I ldb, T beta, ptr c, I ldc",
    "trsm": "i32 order, i32 side, i32 uplo, i32 ta, i32 diag, I m, I n, T alpha, ptr a, I lda, ptr b, I ldb",
    "trsv": "i32 order, i32 uplo, i32 ta, i32 diag, I n, ptr a, I lda, ptr x, I incx",
    "getrf": "ptr m, ptr n, ptr a, ptr lda, ptr pivots, ptr status",
}
_PLAIN, _LEFT = 111, 141       # CblasNoTrans, CblasLeft
_SCALARS = {"s": ("float", 4), "d": ("double", 8), "c": ("ptr", 8), "z": ("ptr", 16)}

# %rows: rows are divided, else columns.  %work: multiplications.  %cut: whether it may be divided at all.
_CHOICE = {
    "gemm": """  %rows = icmp sge i64 %m.64, %n.64
  %mn = mul i64 %m.64, %n.64
  %work = mul i64 %mn, %k.64
  %cut = icmp sge i64 %work, {work}""",
    "trsm": """  %rows = icmp ne i32 %side, {left}
  %order.of.a = select i1 %rows, i64 %n.64, i64 %m.64
  %mn = mul i64 %m.64, %n.64
  %work = mul i64 %mn, %order.of.a
  %cut = icmp sge i64 %work, {work}""",
}
# The steps of the pointers per row (or column) of the divided axis.
_STEPS = {
    "gemm": """  %a.plain = icmp eq i32 %ta, {plain}
  %a.row = select i1 %a.plain, i64 %lda.64, i64 1
  %a.step = select i1 %rows, i64 %a.row, i64 0
  %b.plain = icmp eq i32 %tb, {plain}
  %b.column = select i1 %b.plain, i64 1, i64 %ldb.64
  %b.step = select i1 %rows, i64 0, i64 %b.column
  %c.step = select i1 %rows, i64 %ldc.64, i64 1""",
    "trsm": """  %b.step = select i1 %rows, i64 %ldb.64, i64 1""",
}
_NUMBERS = {"work": LEAST_WORK, "plain": _PLAIN, "left": _LEFT}

# The library's number of threads: 1 during calls of programs, otherwise the user's number.
_STATE = spin_lock("@locked") + """
@locked = internal global i64 0, align 64
@depth = internal global i64 0
@outside = internal global i32 0
declare void @blas.set(i32)
declare i32 @blas.get()
declare i32 @bw_parallel(ptr, ptr, i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
define void @bw_blas_enter() nounwind {
start:
  call void @lock()
  %before = load i64, ptr @depth
  %now = add i64 %before, 1
  store i64 %now, ptr @depth
  %first = icmp eq i64 %before, 0
  br i1 %first, label %set, label %done
set:
  %outside = call i32 @blas.get()
  store i32 %outside, ptr @outside
  call void @blas.set(i32 1)
  br label %done
done:
  call void @unlock()
  ret void
}
define void @bw_blas_leave() nounwind {
start:
  call void @lock()
  %before = load i64, ptr @depth
  %now = sub i64 %before, 1
  store i64 %now, ptr @depth
  %last = icmp eq i64 %now, 0
  br i1 %last, label %set, label %done
set:
  %outside = load i32, ptr @outside
  call void @blas.set(i32 %outside)
  br label %done
done:
  call void @unlock()
  ret void
}
define void @bw_blas_set_threads(i32 %count) nounwind {
start:
  call void @lock()
  %depth = load i64, ptr @depth
  %on = icmp ne i64 %depth, 0
  br i1 %on, label %later, label %now
later:
  store i32 %count, ptr @outside
  br label %done
now:
  call void @blas.set(i32 %count)
  br label %done
done:
  call void @unlock()
  ret void
}
define void @bw_blas_reset() nounwind {
start:
  %depth = load i64, ptr @depth
  %on = icmp ne i64 %depth, 0
  store i64 0, ptr @locked
  store i64 0, ptr @depth
  br i1 %on, label %set, label %done
set:
  %outside = load i32, ptr @outside
  call void @blas.set(i32 %outside)
  br label %done
done:
  ret void
}
"""


def _arguments(routine: str, letter: str, integer: str) -> list[tuple[str, str]]:
    """(type, name) of the arguments."""
    types = {"I": integer, "T": _SCALARS[letter][0]}
    pairs = [argument.split() for argument in _ARGUMENTS[routine].split(", ")]
    return [(types.get(type_, type_), name) for type_, name in pairs]


def _widened(arguments: list[tuple[str, str]], integer: str) -> str:
    """Integers of the library as i64 registers %<name>.64."""
    lines = [f"  %{name}.64 = {'sext i32' if integer == 'i32' else 'add i64'} %{name}{' to i64' if integer == 'i32' else ', 0'}"
             for type_, name in arguments if type_ == integer and name not in ("order", "ta", "tb", "side", "uplo", "diag")]
    return "\n".join(lines)


def _plain_text(symbol: str, arguments: list[tuple[str, str]], routine: str, integer: str) -> str:
    """A call in one thread; a large getrf uses the library's own threads."""
    parameters = ", ".join(f"{type_} %{name}" for type_, name in arguments)
    types = ", ".join(type_ for type_, _ in arguments)
    size, large = "", "i1 false"
    if routine == "getrf":
        size = (f"  %rows.given = load {integer}, ptr %m\n  %rows = {'sext i32' if integer == 'i32' else 'add i64'} %rows.given"
                f"{' to i64' if integer == 'i32' else ', 0'}\n  %square = mul i64 %rows, %rows\n  %work = mul i64 %square, %rows\n"
                f"  %large = icmp sge i64 %work, {LEAST_BLAS_THREADS}\n")
        large = "i1 %large"
    return f"""
declare void @blas.{symbol}({types})
define void @bw_{symbol}({parameters}) nounwind {{
start:
{size}  br {large}, label %as.it.is, label %alone
as.it.is:
  call void @blas.{symbol}({parameters})
  ret void
alone:
  call void @bw_blas_enter()
  call void @blas.{symbol}({parameters})
  call void @bw_blas_leave()
  ret void
}}
"""


def _cut_text(symbol: str, arguments: list[tuple[str, str]], routine: str, integer: str, item: int) -> str:
    """`bw_<symbol>`, and the function of its parts; 16 words of memory hold the arguments and the divided axis."""
    types = ", ".join(type_ for type_, _ in arguments)
    return (f"\ndeclare void @blas.{symbol}({types})\n{_part_text(symbol, arguments, routine, integer, item)}"
            f"{_parts_text(symbol, arguments, routine, integer)}")


def _part_text(symbol: str, arguments: list[tuple[str, str]], routine: str, integer: str, item: int) -> str:
    """The function for rows or columns %begin to %end, called by `bw_parallel`."""
    loads = [f"  %{name}.at = getelementptr i64, ptr %call, i64 {k}\n  %{name} = load {type_}, ptr %{name}.at"
             for k, (type_, name) in enumerate(arguments)]
    narrow = "trunc i64 %length.64 to i32" if integer == "i32" else "add i64 %length.64, 0"
    moved = {line.split(".step")[0].strip("% ") for line in _STEPS[routine].splitlines() if ".step = " in line}
    moves = [f"  %{name}.items = mul i64 %begin, %{name}.step\n  %{name}.bytes = mul i64 %{name}.items, {item}\n"
             f"  %{name}.moved = getelementptr i8, ptr %{name}, i64 %{name}.bytes" for name in sorted(moved)]
    own = {"m": "%m.part", "n": "%n.part"} | {name: f"%{name}.moved" for name in moved}
    values = ", ".join(f"{type_} {own.get(name, '%' + name)}" for type_, name in arguments)
    newline = "\n"
    return f"""define internal i32 @part.{symbol}(ptr %call, i64 %begin, i64 %end) nounwind {{
{newline.join(loads)}
  %rows.at = getelementptr i64, ptr %call, i64 15
  %rows.word = load i64, ptr %rows.at
  %rows = icmp ne i64 %rows.word, 0
{_widened(arguments, integer)}
  %length.64 = sub i64 %end, %begin
  %length = {narrow}
  %m.part = select i1 %rows, {integer} %length, {integer} %m
  %n.part = select i1 %rows, {integer} %n, {integer} %length
{_STEPS[routine].format(**_NUMBERS)}
{newline.join(moves)}
  call void @blas.{symbol}({values})
  ret i32 0
}}
"""


def _parts_text(symbol: str, arguments: list[tuple[str, str]], routine: str, integer: str) -> str:
    """`bw_<symbol>`: the whole call, or its parts in threads."""
    parameters = ", ".join(f"{type_} %{name}" for type_, name in arguments)
    stores = "\n".join([f"  %{name}.at = getelementptr i64, ptr %call, i64 {k}\n  store {type_} %{name}, ptr %{name}.at"
                        for k, (type_, name) in enumerate(arguments)])
    return f"""define void @bw_{symbol}({parameters}) nounwind {{
start:
  %call = alloca [16 x i64], align 16
{_widened(arguments, integer)}
{_CHOICE[routine].format(**_NUMBERS)}
  call void @bw_blas_enter()
  br i1 %cut, label %parts, label %whole
whole:
  call void @blas.{symbol}({parameters})
  br label %done
parts:
{stores}
  %rows.at = getelementptr i64, ptr %call, i64 15
  %rows.word = zext i1 %rows to i64
  store i64 %rows.word, ptr %rows.at
  %count = select i1 %rows, i64 %m.64, i64 %n.64
  %work.of.one = sdiv i64 %work, %count
  %one = call i64 @llvm.smax.i64(i64 %work.of.one, i64 1)
  %least = sdiv i64 {PART_WORK}, %one
  %up = add i64 %least, {PART_EXTENT}
  %blocks = sdiv i64 %up, {PART_EXTENT}
  %grain = mul i64 %blocks, {PART_EXTENT}
  %status = call i32 @bw_parallel(ptr @part.{symbol}, ptr %call, i64 %count, i64 %grain)
  br label %done
done:
  call void @bw_blas_leave()
  ret void
}}
"""


def _text(names: tuple[str, ...], integer: str) -> str:
    texts = [_STATE]
    for symbol in names:
        letter, routine = symbol[0], symbol[1:]
        arguments = _arguments(routine, letter, integer)
        if routine in _CHOICE:
            texts.append(_cut_text(symbol, arguments, routine, integer, _SCALARS[letter][1]))
        else:
            texts.append(_plain_text(symbol, arguments, routine, integer))
    return "".join(texts)


@once
def _calls() -> jit.LoadedCode:
    found = _settable()
    assert found is not None
    names = _wrapped(found)
    symbols = {f"blas.{name}": found.routines[name] for name in names} | threads.symbols()
    symbols |= {"blas.set": found.set_num_threads, "blas.get": found.get_num_threads}
    exports = (*(f"bw_{name}" for name in names), BLAS_ENTER, BLAS_LEAVE, "bw_blas_set_threads", "bw_blas_reset")
    text = _text(names, "i64" if found.integers_64 else "i32")
    loaded = jit.load_for_ever(object_cache.object_for(text, default_target()), symbols, exports)
    threads.set_blas_by(ctypes.CFUNCTYPE(None, ctypes.c_int)(loaded.addresses["bw_blas_set_threads"]))
    in_forked_child(ctypes.CFUNCTYPE(None)(loaded.addresses["bw_blas_reset"]))
    return loaded


@functools.cache
def begin() -> None:
    """Start compiling the wrappers in a background thread, at the first call."""
    if _settable() is not None:
        in_background(_calls)


def _settable() -> blas.Blas | None:
    """The BLAS, if its number of threads can be read and set: then its routines are called through wrappers."""
    found = blas.find()
    return found if found is not None and found.set_num_threads and found.get_num_threads else None


def _wrapped(found: blas.Blas) -> tuple[str, ...]:
    return tuple(sorted(name for name in found.routines if name[1:] in _ARGUMENTS))


def names() -> frozenset[str]:
    """The symbols that have an address: `bw_dgemm` and so on, of all routines that the library has."""
    found = blas.find()
    around = (BLAS_ENTER, BLAS_LEAVE) if _settable() is not None else ()
    return frozenset([*[f"bw_{name}" for name in (found.routines if found else ())], *around])


def symbols() -> Mapping[str, int]:
    """The addresses of `names()`; wrappers are compiled at the first call."""
    found, settable = blas.find(), _settable()
    plain = {f"bw_{name}": address for name, address in (found.routines if found else {}).items()}
    wrapped = [] if settable is None else [*[f"bw_{one}" for one in _wrapped(settable)], BLAS_ENTER, BLAS_LEAVE]
    own = {name: _calls().addresses[name] for name in wrapped}
    return plain | own
