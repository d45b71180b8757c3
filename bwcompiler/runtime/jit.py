"""LLVM: text to optimised object code (`optimise`), object code to addresses (`load`), dumps (`assembly`).

Target machines and one LLJIT per process, made on first use: importing this module initialises nothing.  The
relocation model is PIC with the small code model (rip-relative constants; far calls through stubs, far data by the GOT).

An interrupt must not tear LLVM: all of it is `uninterrupted`.  Several modules can be compiled at once, each in a lane.  LLVM asks only
that threads share neither a context nor a target machine; llvmlite lets one thread at a time into the library, so that passes and code
generation, most of the time that a module takes, are called past its lock.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import itertools
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from bwcompiler.errors import CompileError, InternalError
from bwcompiler.locks import held_at_fork
from bwcompiler.runtime.python_abi import make_immortal
from bwcompiler.target import Target
from bwcompiler.uninterrupted import uninterrupted

_lock = held_at_fork()         # around every call of LLVM but in lanes: a fork in the middle of one would leave a child with half of it


class Tuning(NamedTuple):
    """LLVM's optimisation of programs, as its passes in order: part of every cache key.

    Loops come as vectors, unrolled and with what is constant in them before them (`kernels/loops_to_llvm.py`), so LLVM has little to do.
    None of its vectorisers: what they make takes most of LLVM's time, and the SLP vectoriser joins scalars by shuffles of any form, some
    of which LLVM's X86 code generation gets wrong (tests/properties/test_targets.py has one).
    Level 3 of code generation mostly adds a second scheduling, after register allocation, to level 1: a fifth of LLVM's time, for code
    that is not faster on CPUs with out-of-order execution.
    """

    passes: tuple[str, ...] = ("always_inliner", "sroa", "new_gvn", "instruction_combine", "simplify_cfg",
                               "global_dead_code_eliminate")
    only_short: tuple[str, ...] = ("new_gvn",)     # passes with superlinear time in the size of blocks: see `_level`
    level: int = 1                                 # level of code generation
    longest: int = 20_000                          # most lines of a basic block for this level: see `_level`


TUNING = Tuning()
FINISHED = Tuning(("sroa", "simplify_cfg"), level=3)   # for text that says itself what is to be done, once (`lowering.products`)
PLAIN = Tuning((), level=0)                    # for code that mostly waits: compiled in a quarter of the time


@functools.cache
@uninterrupted
def toolchain() -> str:
    """Versions and machine: besides text, target and tuning, what decides which machine code comes out."""
    with _lock:
        version = ".".join(map(str, llvm.llvm_version_info))
        return f"{llvmlite.__version__} {version} {llvm.get_process_triple()} pic small"


_library_numbers = itertools.count()


@functools.cache
def _initialise() -> None:
    # llvm.initialize() is deprecated and raises; these two suffice without inline assembly.
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _new_target_machine(target: Target, level: int = TUNING.level) -> Any:
    _initialise()
    machine = llvm.Target.from_triple(llvm.get_process_triple())
    return machine.create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="small"
    )


class _Lane:
    """LLVM objects that only one thread at a time may use for compiling."""

    def __init__(self) -> None:
        self.lock = held_at_fork()
        self.contexts: list[Any] = []              # empty or one: created for the first module
        self.machines: dict[tuple[Target, int], tuple[Any, str]] = {}
        self.passes: dict[tuple[Target, Tuning, int], tuple[Any, Any]] = {}

    def context(self) -> Any:
        if not self.contexts:
            self.contexts.append(llvm.create_context())
        return self.contexts[0]

    def machine(self, target: Target, level: int) -> tuple[Any, str]:
        """The target machine, and the first lines of modules for it."""
        if (target, level) not in self.machines:
            machine = _new_target_machine(target, level)
            head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
            self.machines[target, level] = machine, head
        return self.machines[target, level]

    def pass_manager(self, target: Target, tuning: Tuning, level: int) -> tuple[Any, Any]:
        """The passes, and the pass builder that runs them."""
        key = target, tuning, level
        if key not in self.passes:
            manager = llvm.create_new_module_pass_manager()
            for name in tuning.passes:
                getattr(manager, f"add_{name}_pass")()
            self.passes[key] = manager, llvm.create_pass_builder(self.machine(target, level)[0], llvm.create_pipeline_tuning_options())
        return self.passes[key]


_LANES = tuple([_Lane() for _ in range(8)])           # four for parts of a program, the others for products and the thread pool


@contextlib.contextmanager
def _free_lane() -> Iterator[_Lane]:
    """A free lane; if there is none, wait for the first."""
    for lane in _LANES:
        if lane.lock.acquire(blocking=False):
            break
    else:
        lane = _LANES[0]
        lane.lock.acquire()
    try:
        yield lane
    finally:
        lane.lock.release()


@functools.cache
def _lljit() -> Any:
    """The ORC JIT, used only as a linker of object code."""
    return llvm.create_lljit_compiler(_new_target_machine(Target.host()), use_jit_link=True)


def _parse(text: str, context: Any) -> Any:
    try:
        module = llvm.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"invalid LLVM text: {error}") from error
    return module


def _level(text: str, tuning: Tuning) -> int:
    """The level of code generation.  Its time is superlinear in the size of basic blocks (0.3 s for 11,000 instructions, 2 s for 45,000),
    that of level 0 is linear (0.5 s for 45,000); and such a long block (3,000 unrolled steps of a recurrence) runs only once per call.
    Value numbering would take longer than level 0 there (2.1 s for 81,000 instructions, for code of the same size), and is omitted.
    """
    if tuning.level and len(text) > tuning.longest and _longest_block(text) > tuning.longest:
        return 0
    return tuning.level


def _longest_block(text: str) -> int:
    """The number of instructions of the longest basic block: indented lines, as opposed to labels and lines outside of functions.  A
    maximum counts as several, because of its nan check."""
    blocks = itertools.groupby(text.splitlines(), key=lambda line: line[:1] == " ")
    return max([sum([MAXIMUM if "imum." in line else 1 for line in lines]) for indented, lines in blocks if indented], default=0)


MAXIMUM = 6                    # instructions of llvm.maximum and llvm.minimum


def _optimised_module(lane: _Lane, text: str, target: Target, tuning: Tuning) -> tuple[Any, Any]:
    """The target machine and the module."""
    level = _level(text, tuning)
    machine, head = lane.machine(target, level)
    module = _parse(head + text, lane.context())
    if level < tuning.level:
        tuning = tuning._replace(passes=tuple([name for name in tuning.passes if name not in tuning.only_short]))
    if tuning.passes:
        manager, builder = lane.pass_manager(target, tuning, level)
        _unlocked(llvm.ffi.lib.LLVMPY_RunNewModulePassManager)(manager, module, builder)
    return machine, module


@uninterrupted
def optimise(text: str, target: Target, tuning: Tuning | None = None) -> bytes:
    """Parse, verify and optimise a module; returns its object code."""
    with _free_lane() as lane:
        return _object_code(*_optimised_module(lane, text, target, tuning or TUNING))


def _unlocked(function: Any) -> Any:
    """The LLVM function without llvmlite's lock around it, so that other threads can call llvmlite while it runs."""
    return getattr(function, "_cfn", function)


def _object_code(machine: Any, module: Any) -> bytes:
    """`machine.emit_object(module)` without llvmlite's lock."""
    library = llvm.ffi.lib
    with llvm.ffi.OutputString() as message:
        buffer = _unlocked(library.LLVMPY_TargetMachineEmitToMemory)(machine, module, 1, message)
        if not buffer:
            raise CompileError(f"LLVM could not emit code: {message}")
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


@uninterrupted
def assembly(text: str, target: Target) -> str:
    """Machine code of the module as assembler text."""
    with _free_lane() as lane:
        machine, module = _optimised_module(lane, text, target, TUNING)
        return str(machine.emit_assembly(module))


@uninterrupted
def optimised_ir(text: str, target: Target) -> str:
    """The module after LLVM's passes."""
    with _free_lane() as lane:
        return str(_optimised_module(lane, text, target, TUNING)[1])


@uninterrupted
def object_sections(code: bytes) -> list[tuple[str, int, bool]]:
    """Name, size in bytes and whether it is machine code, of every section of object code."""
    with _lock:
        sections = llvm.ObjectFileRef.from_data(code).sections()
        return [((section.name() or b"").decode(), section.size(), section.is_text()) for section in sections]


class LoadedCode:
    """Loaded object code.  It is unloaded when this object dies, so holders of an address must keep it alive."""

    def __init__(self, tracker: Any, addresses: Mapping[str, int]) -> None:
        self.addresses = dict(addresses)
        self.tracker = tracker
        # Not at exit: other threads may still run, and the memory goes anyway.
        weakref.finalize(self, _dropped.append, tracker).atexit = False


# Trackers of code without holders, which is unloaded when the next code is loaded: objects can die in any thread at any time, also while
# the thread holds one of LLVM's locks and another thread holds the other one, which would be a deadlock.
_dropped: collections.deque[Any] = collections.deque()


def _unload_dropped() -> None:
    with contextlib.suppress(IndexError):          # the list is empty
        while True:
            _dropped.popleft().close()


@uninterrupted
def load_for_ever(code: bytes | Sequence[bytes], symbols: Mapping[str, int], exports: Iterable[str]) -> LoadedCode:
    """`load` without unloading, for code that runs while the interpreter is finalised: when arrays die, or in threads of the pool."""
    loaded = load(code, symbols, exports)
    make_immortal(loaded, loaded.tracker, _lljit())
    return loaded


@uninterrupted
def load(code: bytes | Sequence[bytes], symbols: Mapping[str, int], exports: Iterable[str]) -> LoadedCode:
    """Link object code, possibly of several parts that refer to each other.  `symbols` are the addresses of external symbols; those of
    libc and libm are found in the process."""
    with _lock:
        _unload_dropped()
        return _load([code] if isinstance(code, bytes) else code, symbols, tuple(exports))


def _load(parts: Sequence[bytes], symbols: Mapping[str, int], exports: tuple[str, ...]) -> LoadedCode:
    builder = llvm.JITLibraryBuilder().add_current_process()
    for code in parts:
        builder.add_object_img(code)
    for name, address in symbols.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    try:
        # The name of a library can never be used again in one LLJIT, even after it was unloaded.
        tracker = builder.link(_lljit(), f"bw{next(_library_numbers)}")
    except RuntimeError as error:
        raise InternalError(f"cannot link native code: {error}") from error
    return LoadedCode(tracker, {name: tracker[name] for name in exports})
