"""The functions of a kernel that is divided among threads: they pass ranges of iterations to the thread pool.

    void k(pointers, words)                                      called by the program; stores its arguments in a block, and calls
    i32 bw_parallel(ptr part, ptr block, i64 count, i64 grain)   the pool (`runtime/pool/thread_pool.py`), whose threads call
    i32 k.part(ptr block, i64 begin, i64 end)                    which loads the arguments and calls the kernel, with scratch of its own

Only the main thread polls for signals.  If single iterations are long, it polls in the parts that it runs itself, and a signal ends the
parallel region; a loop of many iterations is passed to the pool in chunks, with polls between them.  In both cases `k` returns a status.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler.ir.contracts.program_interface import DECLARE_PARALLEL, DECLARE_POLL, PARALLEL, POLL
from bwcompiler.ir.extent import Affine, Extent, Index, substitute, upper
from bwcompiler.ir.loop import Buffer, Kernel
from bwcompiler.ir.scalar import Word
from bwcompiler.lowering.calls import extent_register
from bwcompiler.lowering.kernels.loops_to_llvm import KernelText
from bwcompiler.lowering.llvm_scalars import register_type
from bwcompiler.lowering.loops.parallel import Cut
from bwcompiler.lowering.polls import POLL_WORK

CHUNK_WORK = 32 * POLL_WORK    # operations of all threads between two polls for signals;
LEAST_CHUNK = 64               # least iterations of a chunk, so that all threads have work (sums have 16 blocks)


class ParallelText(NamedTuple):
    """The functions and their declarations; the buffers and words of the outer function, with the starts of its pointers; and whether it
    returns a status."""

    text: str
    declares: Sequence[str]
    buffers: tuple[Buffer, ...]
    starts: tuple[Extent, ...]
    words: tuple[Index | Word, ...]
    status: bool


def parallel_text(name: str, kernel: Kernel, inner: str, made: KernelText, buffers: Sequence[Buffer], cut: Cut) -> ParallelText:
    """The functions `name` and `name.part` around the function `inner` of a kernel, which takes these buffers."""
    starts = dict(zip(kernel.buffers, made.starts, strict=True))
    shared = [buffer for buffer in buffers if buffer not in cut.private]
    terms = cut.extent.terms if isinstance(cut.extent, Affine) else ()
    words = tuple([word for word in kernel.words if word not in (cut.first, cut.number)
                   and (word in made.words or any(word is index for index, _ in terms))])
    part = _part(name, inner, made, buffers, starts, shared, words, cut)
    chunk = max(LEAST_CHUNK, CHUNK_WORK // cut.work)
    in_chunks = upper(cut.extent) > chunk
    outer = _outer(name, shared, words, cut, chunk if in_chunks else None, made.polls)
    whole = {cut.first: 0, cut.number: 0}                      # the kernel's own pointers move with its first iteration
    return ParallelText(outer + part, [DECLARE_PARALLEL, *([DECLARE_POLL] if in_chunks else [])], tuple(shared),
                        tuple([substitute(starts[buffer], whole) for buffer in shared]), words, in_chunks or made.polls)


def _type(word: Index | Word) -> str:
    return "i64" if isinstance(word, Index) else register_type(word.dtype)


def _outer(name: str, shared: Sequence[Buffer], words: Sequence[Index | Word], cut: Cut, chunk: int | None, polls: bool) -> str:
    """The function that the program calls; it returns a status if the loop is in chunks, or if iterations poll for signals (polls)."""
    parameters = [*[f"ptr %p{k}" for k in range(len(shared))], *[f"{_type(word)} %w{k}" for k, word in enumerate(words)]]
    entries = [*[("ptr", f"%p{k}") for k in range(len(shared))], *[(_type(word), f"%w{k}") for k, word in enumerate(words)]]
    lines = [f"define internal {'i32' if polls or chunk is not None else 'void'} @{name}({', '.join(parameters)}) #1 {{", "entry:",
             f"  %block = alloca [{len(entries) + 1} x i64]"]
    for number, (type_, register) in enumerate(entries):
        lines += [f"  %at{number} = getelementptr i64, ptr %block, i64 {number}", f"  store {type_} {register}, ptr %at{number}"]
    lines.append(f"  %first = getelementptr i64, ptr %block, i64 {len(entries)}")
    lines += _extent(cut.extent, words)
    call = f"call i32 @{PARALLEL}(ptr @{name}.part, ptr %block, i64 %count, i64 {cut.grain})"
    if chunk is None:
        end = "  ret i32 %done" if polls else "  ret void"
        return "\n".join([*lines, "  store i64 0, ptr %first", "  %count = add i64 %total, 0", f"  %done = {call}", end, "}", ""])
    return "\n".join([*lines, f"""  br label %head
head:
  %from = phi i64 [ 0, %entry ], [ %to, %go ]
  %more = icmp slt i64 %from, %total
  br i1 %more, label %body, label %end
body:
  store i64 %from, ptr %first
  %left = sub i64 %total, %from
  %short = icmp slt i64 %left, {chunk}
  %count = select i1 %short, i64 %left, i64 {chunk}
  %done = {call}
  %seen = icmp ne i32 %done, 0
  br i1 %seen, label %leave, label %look
look:
  %status = call i32 @{POLL}()
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %leave, label %go
leave:
  %result = phi i32 [ %done, %body ], [ %status, %look ]
  ret i32 %result
go:
  %to = add i64 %from, %count
  br label %head
end:
  ret i32 0
}}
"""])


def _extent(extent: Extent, words: Sequence[Index | Word]) -> list[str]:
    """%total, the number of iterations."""
    lines: list[str] = []

    def put(text: str) -> str:
        lines.append(f"  %t{len(lines)} = {text}")
        return f"%t{len(lines) - 1}"

    total = extent_register(extent, put, lambda index: f"%w{words.index(index)}")
    return [*lines, f"  %total = add i64 {total}, 0"]


def _part(name: str, inner: str, made: KernelText, buffers: Sequence[Buffer], starts: dict[Buffer, Extent], shared: Sequence[Buffer],
          words: Sequence[Index | Word], cut: Cut) -> str:
    """The function that threads run: iterations begin to end of the call described by the block."""
    lines = [f"define internal i32 @{name}.part(ptr %block, i64 %begin, i64 %end) #1 {{", "entry:"]
    registers: dict[Buffer | Index | Word, str] = {}
    for number, entry in enumerate([*shared, *words]):
        type_ = "ptr" if isinstance(entry, Buffer) else _type(entry)
        lines += [f"  %at{number} = getelementptr i64, ptr %block, i64 {number}", f"  %e{number} = load {type_}, ptr %at{number}"]
        registers[entry] = f"%e{number}"
    for number, buffer in enumerate(buffers):
        if buffer in cut.private:
            size = buffer.dtype.itemsize
            lines += [f"  %s{number} = alloca [{buffer.size * size} x i8], align 64",
                      f"  %s{number}.from = getelementptr i8, ptr %s{number}, i64 {upper(starts[buffer]) * size}"]
            registers[buffer] = f"%s{number}.from"
    lines += [f"  %first.at = getelementptr i64, ptr %block, i64 {len(shared) + len(words)}", "  %first = load i64, ptr %first.at",
              "  %from = add i64 %first, %begin", "  %count = sub i64 %end, %begin"]
    for number, buffer in enumerate(shared):
        start = starts[buffer]
        step = dict(start.terms).get(cut.first, 0) if isinstance(start, Affine) else 0
        if step:
            lines += [f"  %m{number} = mul i64 %from, {step * buffer.dtype.itemsize}",
                      f"  %p{number} = getelementptr i8, ptr {registers[buffer]}, i64 %m{number}"]
            registers[buffer] = f"%p{number}"
    registers[cut.first], registers[cut.number] = "%from", "%count"
    arguments = [*[f"ptr {registers[buffer]}" for buffer in buffers], *[f"{_type(word)} {registers[word]}" for word in made.words]]
    if made.polls:
        return "\n".join([*lines, f"  %status = call i32 @{inner}({', '.join(arguments)})", "  ret i32 %status", "}", ""])
    return "\n".join([*lines, f"  call void @{inner}({', '.join(arguments)})", "  ret i32 0", "}", ""])
