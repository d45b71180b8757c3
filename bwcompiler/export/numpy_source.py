"""`program_source`: exports a program as a readable and runnable NumPy module.

The module imports only NumPy (and `math`, `itertools` if a helper needs them) and defines

    forward(*args) -> (out, residuals)
    backward(residuals, *seeds) -> one gradient per argument, None for those not differentiated
    value_and_grad(*args, *seeds) -> (out, gradients)            without seeds for a function with one scalar output

with one statement per operation and the user's line as a comment.  The field `numpy` of a declaration defines how an
operation is written.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.compiler.pipeline import derive, split
from bwcompiler.compiler.program_like import ProgramLike
from bwcompiler.export.numpy_helpers import helper_source
from bwcompiler.export.numpy_statements import INDENT, Names, StatementWriter
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import INPUT, Value
from bwcompiler.ir.types import dtype_of
from bwcompiler.ops.numpy_text import dtype_text, float_text, full_text, tuple_text
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED

LISTED = 1000                      # captured arrays of at most this many elements are written as lists


class Split(NamedTuple):
    """The two graphs of a program.

    residuals  values of the forward graph, which it returns after the function's own outputs.
    captured   the arrays that the captured inputs of both graphs stand for.
    connected  per differentiated leaf, whether an output depends on it: then the adjoint graph has an output for it.
    seeds      number of outputs that have a cotangent.
    """

    forward: Graph
    adjoint: Graph
    residuals: Sequence[Value]
    captured: Sequence[Any]
    connected: Sequence[bool]
    seeds: int


def program_source(program: ProgramLike) -> str:
    """The text of the module."""
    return _Module(program, _split(program)).text()


def _split(program: ProgramLike) -> Split:
    traced = program.traced
    seeds = tuple(INPUT_SEED if output.dtype.is_differentiable else None for output in traced.outputs)
    joint = derive(traced.graph, program.default_wrt, seeds)
    graph = joint.graph
    present = [position for position in joint.cotangents if position is not None]
    count = len(traced.outputs)
    graph = graph.replace(outputs=[*graph.outputs[:count], *[graph.outputs[position] for position in present]])
    found = split(graph, [position for position in joint.seeds if position is not None], count,
                  program.memory_limit)
    forward = found.forward
    return Split(forward, found.adjoint, forward.outputs[count:], [*traced.captured, *joint.captured],
                 [position is not None for position in joint.cotangents], len(seeds) - seeds.count(None))


def graph_source(graph: Graph) -> str:
    """One graph as a module with one function; captured arrays are its last parameters."""
    names, helpers = Names(), set[Callable[..., Any]]()
    parameters = [names.add(value) for value in graph.inputs]
    lines = [f"{names.of[value]} = {dtype_text(value.dtype)}({names.of[value]})" for value in graph.inputs if not value.rank]
    lines += StatementWriter(names, helpers, {}).lines(graph)
    results = [_result(value, names) for value in graph.outputs]
    lines.append(f"return {results[0] if len(results) == 1 else tuple_text(results)}")
    function = re.sub(r"\W+", "_", graph.name).strip("_") or "function"
    function = function if function.isidentifier() and not keyword.iskeyword(function) else f"function_{function}".rstrip("_")
    return _module_text(f"{graph.name}, written by bwcompiler.", helpers, [], [_function_text(function, parameters, "", lines)])


class _Module:
    def __init__(self, program: ProgramLike, split: Split) -> None:
        self.program = program
        self.split = split
        self.helpers: set[Callable[..., Any]] = set()
        self.arrays: list[str] = []
        self.constants: dict[Value, str] = {}
        self.forward_names: dict[Value, str] = {}
        self.seeds: list[str] = []
        shared = Names()
        forward = split.forward
        captured = forward.inputs[len(forward.inputs) - forward.captured:]
        for value, array in zip(captured, split.captured, strict=True):
            name = self.constants[value] = shared.fresh(value.name or "captured")
            self.arrays.append(f"{name} = {array_text(np.asarray(array))}")
        self.arguments = self._argument_names(shared)

    @property
    def is_scalar(self) -> bool:
        return len(self.program.traced.outputs) == 1 and self.program.traced.outputs[0].shape == () and self.split.seeds == 1

    def text(self) -> str:
        parts = [self._forward()]
        if self.split.seeds:
            parts += [self._backward(), self._value_and_grad()]
        name = getattr(self.program.fun, "__name__", "function")
        made = "forward, backward, value_and_grad" if self.split.seeds else "forward"
        return _module_text(f"{name} and its derivative, written by bwcompiler: {made}.", self.helpers, self.arrays, parts)

    # ----- arguments
    def _argument_names(self, shared: Names) -> list[str]:
        """A name per argument: the user's."""
        count = len(self.program.argument_trees)
        names: list[str] = []
        try:
            parameters = list(inspect.signature(self.program.fun).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        for number in range(count):
            plain = number < len(parameters) and parameters[number].kind in (inspect.Parameter.POSITIONAL_ONLY,
                                                                              inspect.Parameter.POSITIONAL_OR_KEYWORD)
            names.append(shared.fresh(parameters[number].name if plain else f"arg{number}"))
        return names

    def _unpack_arguments(self, names: Names) -> list[str]:
        """Statements that take the leaves out of containers, and make numbers NumPy scalars."""
        lines: list[str] = []
        inputs = self.split.forward.inputs
        for argument, numbers in zip(self.arguments, self.program.argument_trees, strict=True):
            paths = tree.paths(numbers, argument)
            for number, path in zip(tree.leaves(numbers), paths, strict=True):
                value = inputs[number]
                if path == argument:
                    names.of[value] = argument
                else:
                    names.add(value, path)
                    if value.rank:
                        lines.append(f"{names.of[value]} = {path}")
                if not value.rank:
                    lines.append(f"{names.of[value]} = {dtype_text(value.dtype)}({path})")
        return lines

    # ----- functions
    def _forward(self) -> str:
        graph = self.split.forward
        names = Names([*self.constants.values(), *self.arguments])
        names.of.update(self.constants)
        lines = self._unpack_arguments(names)
        lines += StatementWriter(names, self.helpers, {}).lines(graph)
        self.forward_names = names.of
        count = len(self.program.traced.outputs)
        out = container_text(self.program.result_tree, [_result(value, names) for value in graph.outputs[:count]])
        residuals = tuple_text([names.of[value] for value in self.split.residuals])
        lines.append(f"return {out}, {residuals}")
        return _function_text("forward", self.arguments, "The value, and what backward needs of the way there.", lines)

    def _backward(self) -> str:
        graph = self.split.adjoint
        residuals = self.split.residuals
        names = Names(self.constants.values())
        names.of.update(zip(graph.inputs[len(graph.inputs) - graph.captured:], self.constants.values(), strict=True))
        count = len(residuals)
        for value, residual in zip(graph.inputs[:count], residuals, strict=True):
            names.add(value, self.forward_names[residual])
        seeded = [output for output in self.split.forward.outputs[:len(self.program.traced.outputs)] if output.dtype.is_differentiable]
        seeds = self.seeds = [names.add(value, f"{self.forward_names[output]}.ct")
                              for value, output in zip(graph.inputs[count:len(graph.inputs) - graph.captured], seeded, strict=True)]
        lines = [f"{tuple_text([names.of[value] for value in graph.inputs[:count]])[1:-1]} = residuals"] if count else []
        for value, name in zip(graph.inputs[count:], seeds, strict=False):
            if not value.rank:
                lines.append(f"{name} = {dtype_text(value.dtype)}({name})")
        lines += StatementWriter(names, self.helpers, self.forward_names, self._names_again()).lines(graph)
        lines.append(f"return {self._gradients(names)}")
        return _function_text("backward", ["residuals", *seeds], "One gradient per argument, for the cotangents of the outputs.", lines)

    def _names_again(self) -> dict[Value, str]:
        """The names in `forward` of the values that the adjoint graph recomputes."""
        forward, adjoint = self.split.forward, self.split.adjoint
        computed = {(value.op, id(value.attrs), value.operands): value for value in reversed(forward.body)}
        same: dict[Value, Value] = {value: value for value in forward.inputs}
        same.update(zip(adjoint.inputs, self.split.residuals, strict=False))
        for value in adjoint.body:
            operands = tuple(same.get(operand, operand) for operand in value.operands)
            found = computed.get((value.op, id(value.attrs), operands))
            if found is not None:
                same[value] = found
        return {value: self.forward_names[found] for value, found in same.items() if found in self.forward_names}

    def _gradients(self, names: Names) -> str:
        graph = self.split.adjoint
        per_leaf = ["None"] * len(self.program.traced.argument_types)
        connected = iter(graph.outputs)
        for leaf, present in zip(self.program.default_wrt, self.split.connected, strict=True):
            type_ = self.program.traced.argument_types[leaf].type
            per_leaf[leaf] = _result(next(connected), names) if present else full_text(0.0, type_)
        texts = []
        for numbers in self.program.argument_trees:
            leaves = tree.leaves(numbers)
            nothing = all(per_leaf[k] == "None" for k in leaves)
            texts.append("None" if nothing else container_text(numbers, per_leaf))
        return tuple_text(texts)

    def _value_and_grad(self) -> str:
        names = Names(self.arguments)
        seeds = [] if self.is_scalar else [names.fresh(seed) for seed in self.seeds]
        lines = [f"out, residuals = forward({', '.join(self.arguments)})",
                 f"return out, backward({', '.join(['residuals', *(seeds or ['1.0'])])})"]
        return _function_text("value_and_grad", [*self.arguments, *seeds], "The value and one gradient per argument.", lines)


def _result(value: Value, names: Names) -> str:
    """The text of a result: never a read-only view, and of no axes a NumPy scalar."""
    if value.op in (ops.broadcast, ops.iota):
        return f"np.array({names.of[value]})"
    return names.of[value] if value.rank or _is_number(value) else f"{names.of[value]}[()]"


def _is_number(value: Value) -> bool:
    """Whether what is written for a value of no axes gives a NumPy scalar, not an array."""
    if value.op is ops.item:
        region, index = value.operands[0], value.attrs["index"]
        starts = region.operands[index:index + 1] if region.op in ops.LOOPS else ()
        made = [region.attrs[name].outputs[index] for name in ("body", "then_branch", "else_branch") if name in region.attrs]
        return bool(made) and all(map(_is_number, [*made, *starts]))
    if value.op is ops.cast:
        return _is_number(value.operands[0])
    return value.op in (ops.full, INPUT) or (value.op.kind in ("elementwise", "reduction") and value.op is not ops.select)


def _function_text(name: str, parameters: Sequence[str], doc: str, lines: Sequence[str]) -> str:
    body = [*([f'"""{doc}"""'] if doc else []), *lines]
    return "\n".join(['@np.errstate(all="ignore")', f"def {name}({', '.join(parameters)}):", *[INDENT + line for line in body]])


def _module_text(doc: str, helpers: set[Callable[..., Any]], arrays: Sequence[str], functions: Sequence[str]) -> str:
    modules, source = helper_source(helpers)
    imports = [*[f"import {module}" for module in modules], *([""] if modules else []), "import numpy as np"]
    head = [f'"""{doc}"""', "", *imports, *(["", *arrays] if arrays else [])]
    return "\n\n\n".join(["\n".join(head), *([source] if source else []), *functions]) + "\n"


def container_text(node: Any, leaves: Sequence[str]) -> str:
    """A tree of leaf numbers as a Python expression; containers other than tuple, list and dict become a dict or tuple."""
    if node is None:
        return "None"
    if isinstance(node, int):
        return leaves[node]
    if isinstance(node, list):
        return f"[{', '.join(container_text(child, leaves) for child in node)}]"
    if isinstance(node, tuple):
        return tuple_text([container_text(child, leaves) for child in node])
    if isinstance(node, dict):
        return f"{{{', '.join(f'{key!r}: {container_text(child, leaves)}' for key, child in node.items())}}}"
    if is_dataclass(node):
        children = {field.name: getattr(node, field.name) for field in fields(node) if not field.metadata.get("static", False)}
        return container_text(children, leaves)
    return tuple_text([leaves[number] for number in tree.leaves(node)])


def _range_text(array: np.ndarray[Any, Any]) -> str | None:
    """An array of whole numbers at equal distances, as np.arange."""
    if array.ndim != 1 or array.size < 4 or array.dtype.kind not in "iuf" or not np.all(np.abs(array) < 1 << 30):
        return None
    first, step = float(array[0]), float(array[1]) - float(array[0])
    if not (first.is_integer() and step.is_integer() and step):
        return None
    bounds = (int(first), int(first) + int(step) * array.size, int(step))
    if np.arange(*bounds, dtype=array.dtype).tobytes() != array.tobytes():
        return None
    shown = bounds if bounds[2] != 1 else bounds[:2] if bounds[0] else bounds[1:2]
    dtype = [] if array.dtype == np.int64 else [f"dtype={dtype_text(dtype_of(array.dtype))}"]
    return f"np.arange({', '.join([*map(str, shown), *dtype])})"


def array_text(array: np.ndarray[Any, Any]) -> str:
    """An array as an expression: a range, a list, or all its bytes where that would be long."""
    dtype = dtype_of(array.dtype)
    counted = _range_text(array)
    if counted is not None:
        return counted
    array = np.ascontiguousarray(array, dtype.numpy).reshape(array.shape)
    if array.size > LISTED or dtype.is_complex:
        return f'np.frombuffer(bytes.fromhex("{array.tobytes().hex()}"), {dtype_text(dtype)}).reshape({tuple_text(array.shape)})'
    texts = re.sub(r"[^\[\],\s]+", lambda word: float_text(float(word[0])), str(array.tolist())) if dtype.is_float else str(array.tolist())
    return f"np.array({texts}, {dtype_text(dtype)}).reshape({tuple_text(array.shape)})" if 0 in array.shape else (
        f"np.array({texts}, {dtype_text(dtype)})")
