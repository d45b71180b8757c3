"""Native code of matrix products: modules per dtype and target, compiled for the first program that needs them.

Compiling them takes longer than compiling small programs, so background threads start early: with the parts that all products need as
soon as a graph has a product (`begin`), and with the tiles as soon as its text is known (`begin_named`).  LLVM runs without the GIL while
the surrounding program is generated and compiled.  The thread that needs the code compiles the remaining parts itself, last part first,
but does not wait for parts that a first call can do without (`parts.later_for`): a background thread adds these to the table later.
Later processes find the code on disk.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterable

from bwcompiler import ops
from bwcompiler.ir.contracts.program_interface import POLL
from bwcompiler.ir.op import Value
from bwcompiler.ir.products import is_written_out
from bwcompiler.ir.types import DType
from bwcompiler.locks import RenewedLock
from bwcompiler.lowering.libraries.matrix_products import is_called
from bwcompiler.lowering.products.call import Named, named, symbol
from bwcompiler.lowering.products.parts import ALWAYS, CONTROL, CUTTING, RUNTIME, exports_of, functions_of, later_for, part_text, parts_for
from bwcompiler.lowering.products.routine import TABLE, Tiling
from bwcompiler.runtime import interrupts, jit, memory_pool, object_cache, threads
from bwcompiler.runtime.compiled_once import CompiledOnce
from bwcompiler.target import Target
from bwcompiler.uninterrupted import in_background


def is_product_call(value: Value) -> bool:
    """Whether a value is computed by code of this module."""
    return value.op in ops.PRODUCTS and is_called(value) and not is_written_out(value)


def begin(dtype: DType, target: Target) -> None:
    """Start compiling the parts that all products of a dtype need."""
    products(dtype, target).begin(ALWAYS)


def begin_named(symbols: Iterable[str], target: Target) -> None:
    """Start compiling the parts that a program with these symbols needs."""
    for dtype, (parts, _) in _needed([found for name in symbols if (found := named(name))], target).items():
        products(dtype, target).begin(parts)


def addresses(symbols: Iterable[str], target: Target) -> dict[str, int]:
    """The addresses of those symbols that name matrix products, after compiling everything that they need."""
    wanted = {name: found for name in symbols if (found := named(name))}
    entries = {dtype: products(dtype, target).entries(*parts) for dtype, parts in _needed(wanted.values(), target).items()}
    return {name: entries[found.dtype][symbol(found.dtype, alone=found.alone)] for name, found in wanted.items()}


def address(dtype: DType, target: Target) -> int:
    """The address of the general product (any sizes) of a dtype, compiled for a target."""
    return addresses([symbol(dtype)], target)[symbol(dtype)]


def _needed(wanted: Iterable[Named], target: Target) -> dict[DType, tuple[list[str], list[str]]]:
    """The modules that these products need, and those of them that may be loaded later."""
    parts: dict[DType, dict[str, bool]] = {}
    for product in wanted:
        found, later = parts.setdefault(product.dtype, dict.fromkeys(ALWAYS, False)), later_for(product)
        for name in parts_for(product, target):
            found[name] = found.get(name, True) and name in later
    return {dtype: ([name for name, late in found.items() if not late], [name for name, late in found.items() if late])
            for dtype, found in parts.items()}


@functools.cache
def products(dtype: DType, target: Target) -> Products:
    """The products of a dtype for a target."""
    made = Products(dtype, target)
    _all.append(made)
    return made


_all: list[Products] = []


def _settle() -> None:
    """Before a fork: wait for compiling threads, whose modules would never arrive in the child."""
    for made in _all:
        made.settle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_settle)


def _runtime() -> dict[str, int]:
    """The runtime functions that large products call."""
    return {**threads.symbols(), POLL: interrupts.poll_address()}


def _code(dtype: DType, target: Target, name: str) -> bytes:
    """The object code of a module; empty for the functions of the runtime, which are loaded."""
    if name == RUNTIME:
        _runtime()
        return b""
    tuning = jit.PLAIN if name in (CONTROL, CUTTING) else jit.FINISHED
    return object_cache.object_for(part_text(dtype, target, name), target, tuning)


class Products:
    """The product code of a dtype for a target, compiled on demand and never unloaded.

    outside: addresses of runtime functions that replace the usual ones.
    """

    def __init__(self, dtype: DType, target: Target, **outside: int) -> None:
        self.dtype, self.target, self.outside = dtype, target, outside
        self.lock = RenewedLock()
        self.parts: dict[str, CompiledOnce] = {}
        self.loaded: dict[str, int] = {}           # symbol -> address, of functions that programs or other modules refer to, once loaded
        self.filled: set[str] = set()              # modules whose addresses are in the table
        self.awaited: set[str] = set()             # modules that programs run without until they are loaded

    def begin(self, names: Iterable[str]) -> None:
        """Compile those modules in a background thread that no other thread has started."""
        new = {name: self._part(name) for name in names if name not in self.parts}
        if new:
            def compile_() -> None:
                for name, part in new.items():
                    part.code()
                    self._fill(name)

            in_background(compile_)

    def entries(self, names: Iterable[str], later: Iterable[str] = ()) -> dict[str, int]:
        """The addresses of the functions that programs call, once these modules are loaded; `later` ones are added in the background."""
        missing, late = [[name for name in some if name not in self.filled] for some in (names, later)]
        codes = {name: self._part(name).code() for name in reversed(missing)}
        self.begin(late)
        with self.lock:                            # another thread may have loaded some
            codes |= {name: code for name in late if (code := self._part(name).compiled) is not None}
            self.awaited.update([name for name in late if name not in codes])
            self._load({name: codes[name] for name in (*missing, *late) if name in codes and name not in self.filled})
        return self.loaded

    def settle(self) -> None:
        """Wait for the modules that are loaded in the background."""
        for name in sorted(self.awaited):
            self._part(name).code()
            self._fill(name)

    def _fill(self, name: str) -> None:
        """Load a compiled module that programs run without so far."""
        with self.lock:
            if name in self.awaited:
                self._load({name: self._part(name).code()})

    def _load(self, codes: dict[str, bytes]) -> None:
        """Load modules as one library, and put their functions into the table."""
        if not codes:
            return
        functions = [function for name in codes for function in functions_of(self.dtype, self.target, name)]
        found = {**_runtime(), **self.outside} if RUNTIME in codes else {}
        shared = [name for part in codes for name in exports_of(self.dtype, part)]
        exports = [*[function for function in functions if function not in found], *shared]
        modules = [code for code in codes.values() if code]
        if modules:
            found |= jit.load_for_ever(modules, {**memory_pool.functions(), **self.outside, **self.loaded}, exports).addresses
        self.loaded |= {name: found[name] for name in shared}
        table = Tiling.of(self.dtype, self.target).table
        entries = (ctypes.c_void_p * len(table)).from_address(self.loaded[TABLE])
        for function in reversed(functions):       # of those of one module, the first is asked for
            entries[table.index(function)] = found[function]
        self.filled.update(codes)
        self.awaited.difference_update(codes)

    def _part(self, name: str) -> CompiledOnce:
        return self.parts.setdefault(name, CompiledOnce(functools.partial(_code, self.dtype, self.target, name)))
