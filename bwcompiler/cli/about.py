"""Tables of what there is: passes, ops, the machine, the cache."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import Any

import bwcompiler
from bwcompiler.cli.function import closest
from bwcompiler.cli.problems import UserProblem
from bwcompiler.compiler.pipeline import ORDER, PIPELINE
from bwcompiler.inspect.op_table import absences, batch_text, dtypes_text, jvp_text, lowering_text, vjp_text
from bwcompiler.ir.declaration import numpy_name
from bwcompiler.ir.op import KINDS, REGISTRY, Op
from bwcompiler.passes.pass_manager import PassRun
from bwcompiler.runtime import jit, object_cache
from bwcompiler.runtime.addresses import blas
from bwcompiler.target import Target, current_target

_FEATURES = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512bw", "neon", "sve")


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Rows with aligned columns."""
    found = list(rows)
    widths = [max(len(row[k]) for row in found) for k in range(len(found[0]))] if found else []
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in found)


# ----- passes and ops
def passes_text() -> str:
    """The passes in order, and why the order is so."""
    lines = _table((step.name, step.kind, step.doc) for step in PIPELINE)
    return lines + "".join(f"\n{first} before {second}: {because}\n" for first, second, because in ORDER)


def timings_text(runs: Iterable[PassRun]) -> str:
    """What passes did, a row per pass of the pipeline that ran; those of several programs are summed."""
    seconds: dict[str, float] = {}
    nodes: dict[str, list[str]] = {}
    for run in runs:
        seconds[run.name] = seconds.get(run.name, 0.0) + run.seconds
        nodes.setdefault(run.name, []).extend([f"{run.nodes[0]} -> {run.nodes[1]}"] if run.nodes is not None else [])
    rows = [(step.name, f"{seconds[step.name] * 1e3:9.2f}", ", ".join(nodes[step.name])) for step in PIPELINE if step.name in seconds]
    return _table([("pass", f"{'ms':>9}", "values"), *rows, ("total", f"{sum(seconds.values()) * 1e3:9.2f}", "")])


def ops_text(kind: str | None = None) -> str:
    """All ops, or those of one kind."""
    if kind is not None and kind not in KINDS:
        raise UserProblem(f"there is no kind {kind!r} of ops{closest(kind, KINDS)}")
    chosen = sorted((op for op in REGISTRY.values() if kind in (None, op.kind)), key=lambda op: (KINDS.index(op.kind), op.name))
    return _table((op.name, op.kind, " ".join(op.attributes), op.doc) for op in chosen)


def op_text(op: Op) -> str:
    """One op with its rules."""
    rows = [("kind", op.kind), ("attributes", ", ".join(op.attributes) or "none"), ("dtypes", dtypes_text(op)), ("vjp", vjp_text(op)),
            ("jvp", jvp_text(op)), ("batching", batch_text(op)), ("lowering", lowering_text(op)), ("meaning", _place(op.reference)),
            ("ufuncs", ", ".join(op.ufuncs) or "none"), *[("absent", reason) for reason in absences(op)]]
    flags = [name for name in ("commutative", "keeps_zero", "cheap") if getattr(op, name)] + ([] if op.pure else ["has effects"])
    return f"{op.name}: {op.doc}\n" + _table([*rows, ("properties", ", ".join(flags) or "none")])


def _place(function: Callable[..., Any]) -> str:
    return numpy_name(function) or f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', function)}"


# ----- the machine and the cache
def info_text() -> str:
    """Versions and machine."""
    library = blas.find()
    host, target = Target.host(), current_target()
    names = [name for name in _FEATURES if "+" + name in target.features.split(",")]
    _, llvm_version, triple, *_ = jit.toolchain().split()
    rows = [("bwcompiler", bwcompiler.__version__), ("python", f"{platform.python_version()} ({platform.python_implementation()})")]
    rows += [(name, version(name)) for name in ("numpy", "networkx", "llvmlite", "optree")]
    rows += [("LLVM", llvm_version), ("system", platform.platform()), ("CPU", f"{host.cpu}, {os.cpu_count()} logical, {triple}"),
             ("target", f"{target} ({', '.join(names)})"),
             ("BLAS", "none found; factorisations are slower" if library is None else library.path), ("cache", _cache_folder())]
    set_variables = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("BW_")]
    return _table([*rows, ("environment", " ".join(set_variables) or "no BW_ variable is set")])


def _cache_folder() -> str:
    folder = object_cache.default_folder()
    return "off" if folder is None else str(folder)


def cache_text() -> str:
    """Where the cache is and how much is in it."""
    cache = object_cache.disk()
    if cache is None:
        return "the cache is off (BW_CACHE=0)\n"
    count, size = cache.usage()
    rows = [("folder", str(cache.folder)), ("files", str(count)), ("bytes", f"{size} of at most {cache.limit}")]
    problem = cache.problem()
    return _table(rows if problem is None else [*rows, ("unused", f"{problem}: every process compiles anew")])


def clear_cache() -> str:
    """Delete what is kept on disk."""
    cache = object_cache.disk()
    if cache is None:
        return "the cache is off (BW_CACHE=0)\n"
    return f"deleted {cache.clear()} files from {cache.folder}\n"
