"""LLVM: text to optimised object code (`optimise`), object code to addresses (`load`), dumps (`assembly`).

One target machine and one LLJIT per process, made on first use: importing this module initialises nothing.  The
relocation model is PIC with the small code model (rip-relative constants; far calls through stubs, far data by the GOT).
LLVM runs under llvmlite's process-wide lock, so compiling in several threads at once gains nothing.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import llvmlite
import llvmlite.binding as llvm

from bwcompiler.errors import CompileError
from bwcompiler.locks import held_at_fork

# "full": O3 with loop and SLP vectorisation.  "cheap": O1 without them, for kernels already written with vectors.
Pipeline = Literal["full", "cheap"]

_lock = held_at_fork()         # around every call of LLVM: a fork in the middle of one would leave a child with half of it


@functools.cache
def host_features() -> str:
    """CPU features in LLVM's spelling, `+avx2,-avx512f,...`: the CPU's name alone may be wrong in a virtual machine."""
    with _lock:
        return str(llvm.get_host_cpu_features().flatten())


@functools.cache
def host_cpu() -> str:
    with _lock:
        return str(llvm.get_host_cpu_name())


@functools.cache
def toolchain() -> str:
    """Everything besides the text that decides which machine code comes out: part of every cache key."""
    with _lock:
        version = ".".join(map(str, llvm.llvm_version_info))
        return f"{llvmlite.__version__} {version} {llvm.get_process_triple()} {host_cpu()} {host_features()} pic small"


def vector_bits() -> int:
    """Width of the vectors that generated code should use; 128 where nothing wider is known."""
    features = host_features().split(",")
    return 512 if "+avx512f" in features else 256 if "+avx2" in features else 128


def _function_attributes() -> str:
    # Without the attribute LLVM never uses 512-bit registers, whatever the CPU (docs/lowering.md A).
    preference = f' "prefer-vector-width"="{vector_bits()}"' if vector_bits() > 128 else ""
    return "nounwind" + preference


# For the attribute group of every function with loops: f"attributes #0 = {{ {FUNCTION_ATTRIBUTES} }}".
FUNCTION_ATTRIBUTES = _function_attributes()

_library_numbers = itertools.count()


@functools.cache
def _initialise() -> None:
    # llvm.initialize() is deprecated and raises; these two suffice without inline assembly.
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _new_target_machine() -> Any:
    _initialise()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=host_cpu(), features=host_features(), opt=3, reloc="pic", codemodel="small"
    )


@functools.cache
def _target_machine() -> Any:
    return _new_target_machine()


@functools.cache
def _lljit() -> Any:
    return llvm.create_lljit_compiler(_new_target_machine(), use_jit_link=True)


def _parse(text: str) -> Any:
    _initialise()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"invalid LLVM text: {error}") from error
    module.triple = _target_machine().triple
    module.data_layout = str(_target_machine().target_data)
    return module


def _optimised_module(text: str, pipeline: Pipeline) -> Any:
    module = _parse(text)
    full = pipeline == "full"
    options = llvm.create_pipeline_tuning_options(speed_level=3 if full else 1)
    options.loop_vectorization = options.slp_vectorization = full
    options.loop_interleaving = options.loop_unrolling = full
    builder = llvm.create_pass_builder(_target_machine(), options)
    manager = builder.getModulePassManager()
    manager.run(module, builder)
    # llvmlite finds an empty _dispose before that of NewPassManager and never frees a manager: 0.1 MB each.
    llvm.newpassmanagers.NewPassManager._dispose(manager)
    manager.detach()
    return module


def optimise(text: str, pipeline: Pipeline = "full") -> bytes:
    """Parse, verify and optimise a module; its object code."""
    with _lock:
        return bytes(_target_machine().emit_object(_optimised_module(text, pipeline)))


def assembly(text: str, pipeline: Pipeline = "full") -> str:
    """Machine code of the module as assembler text."""
    with _lock:
        return str(_target_machine().emit_assembly(_optimised_module(text, pipeline)))


def optimised_ir(text: str, pipeline: Pipeline = "full") -> str:
    """The module after LLVM's passes."""
    with _lock:
        return str(_optimised_module(text, pipeline))


def object_sections(code: bytes) -> list[tuple[str, int, bool]]:
    """Name, size in bytes and whether it is machine code, of every section of object code."""
    with _lock:
        sections = llvm.ObjectFileRef.from_data(code).sections()
        return [((section.name() or b"").decode(), section.size(), section.is_text()) for section in sections]


class LoadedCode:
    """Object code in memory.  Unloaded when dropped, so whoever holds an address must hold this too."""

    def __init__(self, tracker: Any, addresses: Mapping[str, int]) -> None:
        self.addresses = dict(addresses)
        # Not at exit: other threads may still run, and the memory goes anyway.
        weakref.finalize(self, _unload, tracker).atexit = False


def _unload(tracker: Any) -> None:
    with _lock:
        tracker.close()


def load(code: bytes, symbols: Mapping[str, int], exports: Iterable[str]) -> LoadedCode:
    """Link object code.  `symbols` are the addresses of what it refers to; libc and libm are found in the process."""
    with _lock:
        return _load(code, symbols, tuple(exports))


def _load(code: bytes, symbols: Mapping[str, int], exports: tuple[str, ...]) -> LoadedCode:
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name, address in symbols.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    try:
        # The name of a library can never be used again in one LLJIT, even after it was unloaded.
        tracker = builder.link(_lljit(), f"bw{next(_library_numbers)}")
    except RuntimeError as error:
        raise CompileError(f"cannot link native code: {error}") from error
    return LoadedCode(tracker, {name: tracker[name] for name in exports})
