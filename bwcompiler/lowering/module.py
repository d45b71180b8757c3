"""`Module`: the LLVM module of a program under construction, with what its functions share: kernels, mathematics, declarations.

A function is written after those that it calls, so whatever there is at any time is a module of its own: LLVM can compile it while the
rest is being written (`begin`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from bwcompiler.ir.contracts.memory import Location
from bwcompiler.ir.extent import Extent, Index, upper
from bwcompiler.ir.loop import OUTPUT, Buffer, Fill, Kernel
from bwcompiler.ir.op import Value
from bwcompiler.ir.scalar import Word, const
from bwcompiler.ir.types import TensorType
from bwcompiler.lowering.kernels.loops_to_llvm import kernel_to_llvm
from bwcompiler.lowering.kernels.parallel_calls import parallel_text
from bwcompiler.lowering.libraries.call_texts import Libraries
from bwcompiler.lowering.llvm_scalars import ScalarEmitter
from bwcompiler.lowering.loops.complex.split_complex import split_complex
from bwcompiler.lowering.loops.parallel import Piece, pieces
from bwcompiler.lowering.math.functions import math_function, math_texts
from bwcompiler.lowering.module_parts import declarations, defined_in, is_copied, is_enough, shares, shown, symbols_in
from bwcompiler.lowering.polls import POLL_WORK, statements_work
from bwcompiler.lowering.regions import BodyFunction, RegionFunction
from bwcompiler.lowering.steps import LoweredBody, LoweredStep
from bwcompiler.target import Target

FEW_LINES = 200                # lines of a kernel that is inlined into its callers


class Callback(NamedTuple):
    """A value computed by its op's NumPy reference: the symbol the program calls, with pointers to operands and results.

    strides    of the operands, in elements.
    """

    symbol: str
    value: Value
    strides: tuple[tuple[int, ...], ...]


class KernelFunction(NamedTuple):
    """The function emitted for a kernel (or a part of one), and the buffers and words that it takes.

    starts: per pointer the element that it points at, as an expression of the kernel's words.
    """

    name: str
    buffers: tuple[Buffer, ...]
    starts: tuple[Extent, ...]
    words: tuple[Index | Word, ...]
    polls: bool
    work: int


class Module:
    """Functions, declarations and caches that the functions of a program share.

    begin   is told the parts of the module, each as soon as there is enough for one, and the rest at the end; None: nobody compiles
            it.
    """

    def __init__(self, libraries: Libraries, target: Target, begin: Callable[[str], None] | None = None) -> None:
        self.libraries = libraries
        self.target = target
        self.begin = begin
        self.scalars = ScalarEmitter(target)
        self.functions: dict[str, str] = {}
        self.inlined: dict[str, int] = {}          # functions that are, with the lengths of their texts
        self.texts: list[str] = []
        self.declares: dict[str, None] = {}
        self.callbacks: list[Callback] = []
        self.checked: list[Value] = []
        self.kernels: dict[tuple[int, tuple[tuple[Buffer, Buffer], ...]], list[KernelFunction]] = {}
        self.emitted: set[str] = set()             # names of kernels: variants with another order of stores have the same name
        self.bodies: dict[tuple[int, tuple[Index, ...]], BodyFunction] = {}        # by ids, and the indices of the enclosing loops;
        self.regions: dict[tuple[Value, tuple[Index, ...]], RegionFunction] = {}   # likewise
        self.fills: dict[tuple[TensorType, str], Kernel] = {}
        self.done = 0                              # texts that are in parts,
        self.copied: dict[str, str] = {}           # or are copied to each that names them: by what they define;
        self.outside: dict[str, str] = {}          # declarations of the functions in parts

    def new_name(self, kind: str) -> str:
        return f"{kind}{len(self.texts)}"

    def function(self, text: str, name: str) -> str:
        """The name of the function with this text (which names it `name`); equal functions share one."""
        body = text.replace(f"@{name}(", "@(", 1)
        found = self.functions.get(body)
        if found is None:
            found = self.functions[body] = name
            self.texts.append(text)
            if is_copied(text):
                self.inlined[name] = len(text)
        return found

    def kernel(self, kernel: Kernel, merged: Mapping[Buffer, Buffer]) -> list[KernelFunction]:
        """The functions of a kernel, to be called in this order; emitted on first use."""
        key = (id(kernel), tuple(merged.items()))
        found = self.kernels.get(key)
        if found is None:
            suffix = f".{len(self.kernels)}" if kernel.name in self.emitted else ""
            self.emitted.add(kernel.name)
            found = self.kernels[key] = [self._piece(piece, merged, f"{piece.kernel.name}{suffix}") for piece in pieces(kernel, merged)]
            self.hand_over()
        return found

    def hand_over(self, is_end: bool = False) -> None:
        """Begin parts with the functions that are new, if there are enough of them."""
        if self.begin is None:
            return
        texts = self.texts[self.done:]
        if not is_end and not is_enough(texts):
            return
        self.done = len(self.texts)
        own = [text for text in texts if not is_copied(text)]
        for text in texts:
            if is_copied(text):
                self.copied.update(dict.fromkeys(defined_in(text), text))
            else:
                self.outside.update(zip(defined_in(text), declarations(text), strict=True))
        for share in shares(own):
            self.begin(self._part(share))

    def declared(self) -> dict[str, None]:
        return {**self.declares, **self.scalars.declares}

    def _piece(self, piece: Piece, merged: Mapping[Buffer, Buffer], name: str) -> KernelFunction:
        kernel, cut = piece
        self.scalars.count = 0
        inner = name if cut is None else f"{name}.range"
        made = kernel_to_llvm(kernel, self.scalars, merged=merged, name=inner, may_poll=cut is None or cut.work > POLL_WORK)
        buffers = [buffer for buffer in kernel.buffers if buffer not in merged]
        if cut is None:
            work = 0 if made.polls else statements_work(kernel.body)
            shown = tuple([start for buffer, start in zip(kernel.buffers, made.starts, strict=True) if buffer not in merged])
            return KernelFunction(self.function(_inlined(made.text), name), tuple(buffers), shown, made.words, made.polls, work)
        around = parallel_text(name, kernel, self.function(made.text, inner), made, buffers, cut)
        self.declares.update(dict.fromkeys(around.declares))
        self.texts.append(around.text)
        work = 0 if around.status else upper(cut.extent) * cut.work
        return KernelFunction(name, around.buffers, around.starts, around.words, around.status, work)

    def fill(self, type_: TensorType, number: int | float) -> Kernel:
        """The kernel that fills an array with one number."""
        key = (type_, repr(number))
        found = self.fills.get(key)
        if found is None:
            buffer = Buffer("x", type_.dtype, type_.shape, OUTPUT)
            kernel = Kernel(f"fill{len(self.fills)}", [buffer], [Fill(buffer, const(number, type_.dtype))])
            found = self.fills[key] = split_complex(kernel)
        return found

    def _part(self, texts: Sequence[str]) -> str:
        """These functions as a module that others refer to, with all that they name."""
        named: set[str] = set()
        copied: dict[str, None] = {}
        pending = list(texts)
        while pending:
            new = {name for text in pending for name in symbols_in(text)} - named
            named |= new
            pending = [self.copied[name] for name in sorted(new) if name in self.copied]
            copied.update(dict.fromkeys(pending))
        functions = [*map(shown, texts), *copied]
        wanted = [one for one in self.scalars.math if math_function(*one).symbol.removeprefix("@") in named]
        mathematics, intrinsics = math_texts(wanted, functions, self.target)
        own = {name for text in texts for name in defined_in(text)}
        declares = [line for line in self.declared() if symbols_in(line)[0] in named]
        for text in mathematics:
            name = defined_in(text)[0]
            if not is_copied(text):
                if name in self.outside:
                    continue
                self.outside[name] = declarations(text)[0]
                text = shown(text)
            own.add(name)
            functions.append(text)
        declares += [line for name, line in self.outside.items() if name in named and name not in own]
        return _joined(functions, [*intrinsics, *declares], self.target)

    def text(self) -> str:
        """The whole module."""
        functions, intrinsics = math_texts(self.scalars.math, self.texts, self.target)
        return _joined([*self.texts, *functions], [*intrinsics, *self.declared()], self.target)


def _joined(functions: Sequence[str], declares: Iterable[str], target: Target) -> str:
    """One declaration per external function or datum, even if parameters are spelled differently."""
    seen: dict[str, str] = {}
    for line in declares:
        seen.setdefault(symbols_in(line)[0], line)
    attributes = target.function_attributes
    return "\n".join([*functions, *seen.values(), f"attributes #0 = {{ {attributes} }}", f"attributes #1 = {{ noinline {attributes} }}",
                      f"attributes #2 = {{ alwaysinline {attributes} }}", ""])


def merged_buffers(body: LoweredBody, step: LoweredStep, kernel: Kernel) -> dict[Buffer, Buffer]:
    """Inputs of a step's kernel that share the memory of one of its outputs."""
    buffer_of = {owner: buffer for owner, buffer in zip(step.owners, kernel.buffers, strict=True) if owner is not None}
    held = {body.graph.inputs[number]: Location("result", result) for result, number in enumerate(body.into) if number is not None}
    places = body.plan.locations
    return {buffer_of[source]: buffer_of[target] for source, target in step.sharing
            if held.get(source, places[source]) == places[target]}


def _inlined(text: str) -> str:
    """The text of a kernel; a short one without loops is marked alwaysinline, so that values passed between the steps of a loop over
    elements stay in registers."""
    few = text.count("\n") <= FEW_LINES and "\nentry:" in text and " br " not in text
    return text.replace(") #1 {", ") #2 {", 1) if few else text
