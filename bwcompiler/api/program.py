"""`compile`: the backward program itself, as Chainer, PyTorch and Torch7 users know it.

A `Program` is traced once.  Each kind of request (which arguments, which outputs are seeded, accumulate or not) builds its
own joint graph once, so `backward(wrt=(0,))` computes only what it needs, and `into=` adds inside the gradient kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import inspect, ops, tree
from bwcompiler.api.executables import Compiled, compile_graph, flat_tree
from bwcompiler.api.functions import JitFunction, argument_kind
from bwcompiler.api.seeds import concrete_seed, match_tree, missing_seed
from bwcompiler.api.transforms import check_differentiable
from bwcompiler.collector import collector_paused
from bwcompiler.compiler.lowered import Lowered
from bwcompiler.compiler.pipeline import lower
from bwcompiler.errors import GradientError, SignatureError
from bwcompiler.frontend.tracing.trace import TraceResult, trace
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.graph_printer import names_in_text
from bwcompiler.ir.late_base import with_networkx
from bwcompiler.ir.op import Record, Value, constant, input_value
from bwcompiler.ir.plan import ArgumentKind, Leaf
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.autodiff import INPUT_SEED, ONE, JointGraph, differentiate
from bwcompiler.passes.expand_custom_rules import inline_calls
from bwcompiler.passes.partition import Partition, partition


class Request(NamedTuple):
    """One kind of backward call.  seeds: per output "one", "input" or None; into: leaves accumulated into a caller's buffer."""

    wrt: tuple[int, ...]
    seeds: tuple[str | None, ...]
    value: bool
    into: tuple[int, ...] = ()
    from_residuals: bool = False


class Runner(NamedTuple):
    """A compiled request: call it with leaves, seeds, scale and buffers, flat; gradients[k] is the result for wrt[k].

    graph    what was asked to be compiled; `compiled` may be shared with an equal graph of other lines.
    origins  value of the graph -> the traced value that it was rebuilt from.
    """

    compiled: Compiled
    call: Callable[..., Any]
    graph: Graph
    origins: Mapping[Value, Value] = {}


class Halves(NamedTuple):
    """A program in two, forward and adjoint, and what they were made from."""

    partition: Partition
    joint: JointGraph


class Program:
    """A compiled function with its backward program.  Made by `bw.compile`.

    Arguments must have the tree, shapes and dtypes that the program was compiled for; SignatureError is raised for others.

    >>> import numpy as np, bwcompiler as bw
    >>> program = bw.compile(lambda x: np.sum(x * x), np.zeros(2))
    >>> x = np.array([1.0, 2.0])
    >>> program(x).item(), program.backward(x)[0].tolist()
    (5.0, [2.0, 4.0])
    """

    def __init__(self, fun: Callable[..., Any], example_args: Sequence[Any], wrt: Sequence[int] | int | None = None,
                 mutates: Any = True) -> None:
        self.fun = fun
        self.__name__ = getattr(fun, "__name__", "program")
        with collector_paused():
            self.traced: TraceResult = trace(fun, example_args)
        self.mutating: JitFunction | None = None
        if self.traced.mutated:                    # derivatives are taken where the arguments are on entry, and write nothing back
            self.mutating = JitFunction(fun, mutates=mutates)
            graph, outputs = self.traced.graph, self.traced.outputs
            self.traced.graph = graph.replace(body=live_values(graph.body, outputs), outputs=outputs)
        self.example_leaves, self.treedef = tree.flatten(tuple(example_args))
        self.argument_trees = tree.unflatten(self.treedef, range(len(self.example_leaves)))
        self.result_tree = tree.unflatten(self.traced.output_tree, range(len(self.traced.outputs)))
        self.kinds: tuple[ArgumentKind, ...] = tuple(
            argument_kind(argument, leaf) for argument, leaf in zip(self.traced.argument_types, self.example_leaves, strict=True))
        self.default_wrt = self._wrt_leaves(wrt)
        self.runners: dict[Request, Runner] = {}
        self._halves: dict[Request, Halves] = {}
        self._lowered: Lowered | None = None
        self.forward_runner: Runner | None = None

    # ----- running
    def __call__(self, *args: Any) -> Any:
        """The function's value; arguments that the function assigns to are written back (`mutates`)."""
        if self.mutating is not None:
            self._leaves(args)
            return self.mutating(*args)
        if self.forward_runner is None:
            self.forward_runner = self._runner(self.traced.graph, self.kinds)
        return tree.unflatten(self.traced.output_tree, self.forward_runner.call(*self._leaves(args)))

    def backward(self, *args: Any, grad_outputs: Any = None, wrt: Sequence[int] | int | None = None, into: Any = None,
                 scale: float | None = None) -> tuple[Any, ...]:
        """One gradient per argument, None for those not in wrt; `into` buffers get `+= scale * gradient` and are returned.

        grad_outputs   the seed of every output (None: zero); may be left out for one scalar output.
        wrt            positions of the arguments to differentiate, instead of those given to `compile`; only these are computed.
        into           one buffer (or None) per argument, of its tree, shape and dtype.
        Raises SeedError for a seed of wrong shape, dtype or structure, SignatureError for arguments or buffers that do not fit,
        GradientError for integer arguments in wrt, ValueError for a read-only buffer.

        >>> import numpy as np, bwcompiler as bw
        >>> program, x, buffer = bw.compile(lambda x: x * x, np.zeros(2)), np.array([1.0, 2.0]), np.ones(2)
        >>> program.backward(x, grad_outputs=np.array([1.0, 10.0]))[0].tolist()
        [2.0, 40.0]
        >>> program.backward(x, grad_outputs=np.ones(2), into=(buffer,), scale=0.5)[0] is buffer, buffer.tolist()
        (True, [2.0, 3.0])
        """
        return self._backward(args, grad_outputs, wrt, into, scale, value=False)[1]

    def value_and_backward(self, *args: Any, grad_outputs: Any = None, wrt: Sequence[int] | int | None = None, into: Any = None,
                           scale: float | None = None) -> tuple[Any, tuple[Any, ...]]:
        """(value, gradients) in one native call; arguments and errors as for `backward`.

        >>> import numpy as np, bwcompiler as bw
        >>> value, (gradient,) = bw.compile(lambda x: np.sum(x * x), np.zeros(2)).value_and_backward(np.array([1.0, 2.0]))
        >>> value.item(), gradient.tolist()
        (5.0, [2.0, 4.0])
        """
        return self._backward(args, grad_outputs, wrt, into, scale, value=True)

    def vjp(self, *args: Any) -> tuple[Any, Callable[..., tuple[Any, ...]]]:
        """(value, pullback): the pullback runs the adjoint program from saved residuals, as often as it is called.

        The pullback takes grad_outputs, into= and scale= as `backward` does.

        >>> import numpy as np, bwcompiler as bw
        >>> value, pullback = bw.compile(lambda x: x * x, np.zeros(2)).vjp(np.array([1.0, 2.0]))
        >>> pullback(np.array([1.0, 0.0]))[0].tolist(), pullback(np.array([0.0, 1.0]))[0].tolist()
        ([2.0, 0.0], [0.0, 4.0])
        """
        request = self._default_request()
        key = request._replace(value=True)
        runner = self.runners.get(key)
        if runner is None:
            halves = self._split(request)
            runner = self.runners[key] = self._runner(halves.partition.forward, self.kinds, halves.joint.captured)
        results = runner.call(*self._leaves(args))
        count = len(self.traced.outputs)
        residuals = results[count:]

        def pullback(grad_outputs: Any = None, *, into: Any = None, scale: float | None = None) -> tuple[Any, ...]:
            return self._pull(request, residuals, grad_outputs, into, scale)

        return tree.unflatten(self.traced.output_tree, results[:count]), pullback

    # ----- looking
    @property
    def graph(self) -> Graph:
        """The forward graph (a networkx DiGraph)."""
        return with_networkx(self.traced.graph)  # type: ignore[no-any-return]

    @property
    def adjoint(self) -> Graph:
        """The adjoint graph: residuals and seeds -> cotangents of the differentiable arguments."""
        return with_networkx(self.halves().partition.adjoint)  # type: ignore[no-any-return]

    def forward_names(self) -> dict[Value, str]:
        """What the text of `graph` calls its values, and those that stand for them in the adjoint graph."""
        names = names_in_text(self.graph)
        halves = self.halves()
        names |= {value: names[traced] for value, traced in halves.joint.origins.items()}
        return names | {copy: names[value] for copy, value in halves.partition.stands_for.items() if value in names}

    def lowered_names(self) -> dict[Value, str]:
        """Names for the values of `lowered().simplified` that call those of `graph` as its text does."""
        names = names_in_text(self.graph)
        names |= {value: names[traced] for value, traced in self._default_runner().origins.items()}
        return names_in_text(self.lowered().simplified, names)

    def as_text(self, stage: str = "adjoint", format: str = "text") -> str:
        """The program at one stage: source, forward, adjoint, simplified, fused, plan, loops, llvm, llvm-opt, asm or object.

        format  text; json, dot or svg for graphs; html for all stages on one page; py for a NumPy module that computes the
                same (`as_text(format="py")`, or just `as_text("py")`).
        """
        return inspect.render(self, "adjoint", stage) if stage in inspect.FORMATS else inspect.render(self, stage, format)

    def dump(self, path: str | Path) -> list[Path]:
        """Write all stages on one page (`loss.html`), the module (`loss.py`), the adjoint graph (`.txt`, `.json`, `.dot`, `.svg`)
        or the object file (`.o`), as the suffix says; without suffix, a folder with a text per stage and the page."""
        return inspect.write(self, Path(path))

    def explain(self) -> str:
        """In words: why gradients are None or zero, what is saved and computed again, what runs in which loop and why not in
        another, which updates are in place, what is copied, which library calls and callbacks are made."""
        return inspect.explain_program(self)

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, outputs, arena and residuals, exact before running."""
        return inspect.memory_of(self)

    def cost_analysis(self) -> dict[str, float]:
        """Arithmetic operations and bytes of one value_and_backward call."""
        return inspect.cost_of(self)

    # ----- requests
    def halves(self) -> Halves:
        """The default backward program, split where `vjp` splits it."""
        return self._split(self._default_request())

    def joint_compiled(self) -> Compiled:
        """The default backward program: value and all gradients."""
        return self._default_runner().compiled

    def lowered(self) -> Lowered:
        """Every stage of the default backward program, with the lines of this program's function."""
        if self._lowered is None:
            runner = self._default_runner()
            shared = runner.compiled.lowered
            self._lowered = shared if shared.graph is runner.graph else lower(inline_calls(runner.graph))
        return self._lowered

    def _default_runner(self) -> Runner:
        return self._joint_runner(self._default_request()._replace(value=True, from_residuals=False))

    def _default_request(self) -> Request:
        seeds = tuple(INPUT_SEED if output.dtype.is_differentiable else None for output in self.traced.outputs)
        return Request(self.default_wrt, seeds, False, (), True)

    def _wrt_leaves(self, wrt: Sequence[int] | int | None) -> tuple[int, ...]:
        """The leaf numbers of the arguments to differentiate; None: every float leaf."""
        if wrt is None:
            return tuple(k for k, argument in enumerate(self.traced.argument_types) if argument.type.dtype.is_differentiable)
        count = len(self.argument_trees)
        chosen: list[int] = []
        for number in (wrt,) if isinstance(wrt, int) else tuple(wrt):
            if not isinstance(number, int) or not -count <= number < count:
                raise GradientError(f"wrt={wrt!r}: {self.__name__} has {count} arguments")
            chosen += tree.leaves(self.argument_trees[number])
        check_differentiable(self.traced, chosen)
        return tuple(sorted(set(chosen)))

    def _leaves(self, args: Sequence[Any]) -> list[Any]:
        leaves, treedef = tree.flatten(tuple(args))
        if treedef != self.treedef:
            if len(args) != len(self.argument_trees):
                raise SignatureError(f"{self.__name__} was compiled for {len(self.argument_trees)} arguments, got {len(args)}")
            raise SignatureError(f"{self.__name__} was compiled for arguments of the structure {self.treedef}, got {treedef}")
        for leaf, argument, name in zip(leaves, self.traced.argument_types, self.traced.input_names, strict=True):
            shape, dtype = np.shape(leaf), getattr(leaf, "dtype", None)
            if shape != argument.type.shape or (dtype is not None and np.dtype(dtype).newbyteorder("=") != argument.type.dtype.numpy):
                raise SignatureError(f"{name} has shape {shape} and dtype {dtype}, but the program was compiled for shape "
                                     f"{argument.type.shape} and dtype {argument.type.dtype.numpy}")
        return leaves

    def _seeds(self, grad_outputs: Any) -> tuple[tuple[str | None, ...], list[Any]]:
        """Per output how it is seeded, and the arrays of those given."""
        outputs = self.traced.outputs
        if grad_outputs is None:
            if len(outputs) != 1 or outputs[0].shape != () or not outputs[0].dtype.is_differentiable:
                raise missing_seed(outputs)
            return (ONE,), []
        pairs = match_tree(self.result_tree, grad_outputs, "grad_outputs")
        kinds = tuple(None if leaf is None else INPUT_SEED for leaf, _ in pairs)
        arrays = [concrete_seed(leaf, output, path) for (leaf, path), output in zip(pairs, outputs, strict=True) if leaf is not None]
        return kinds, arrays

    def _into(self, into: Any, wrt: tuple[int, ...]) -> dict[int, Any]:
        """Leaf number -> buffer of the caller."""
        if into is None:
            return {}
        if not isinstance(into, tuple | list) or len(into) != len(self.argument_trees):
            raise SignatureError(f"into must have one entry per argument ({len(self.argument_trees)}), None where there is no buffer")
        found: dict[int, Any] = {}
        for numbers, buffers in zip(self.argument_trees, into, strict=True):
            if buffers is None:
                continue
            pairs = match_tree(numbers, buffers, "into")
            for number, (buffer, path) in zip(tree.leaves(numbers), pairs, strict=True):
                if buffer is not None:
                    self._check_buffer(buffer, number, path, wrt)
                    found[number] = buffer
        return found

    def _check_buffer(self, buffer: Any, number: int, path: str, wrt: tuple[int, ...]) -> None:
        type_, name = self.traced.argument_types[number].type, self.traced.input_names[number]
        if number not in wrt:
            raise SignatureError(f"{path}: a buffer was given for {name}, which is not differentiated (wrt)")
        if not isinstance(buffer, np.ndarray) or buffer.shape != type_.shape or buffer.dtype != type_.dtype.numpy:
            got = f"shape {np.shape(buffer)} and dtype {getattr(buffer, 'dtype', type(buffer).__name__)}"
            raise SignatureError(f"{path}: the buffer for {name} must be an array of shape {type_.shape} and dtype "
                                 f"{type_.dtype.numpy}, got {got}")
        if not buffer.flags.writeable:
            raise ValueError(f"{path}: the buffer for {name} is read-only")

    def _backward(self, args: Sequence[Any], grad_outputs: Any, wrt: Any, into: Any, scale: float | None,
                  value: bool) -> tuple[Any, tuple[Any, ...]]:
        leaves = self._leaves(args)
        chosen = self.default_wrt if wrt is None else self._wrt_leaves(wrt)
        kinds, seeds = self._seeds(grad_outputs)
        buffers = self._into(into, chosen)
        request = Request(chosen, kinds, value, tuple(buffers))
        results = self._accumulate(self._joint_runner(request), [*leaves, *seeds], buffers, scale)
        count = len(self.traced.outputs) if value else 0
        out = tree.unflatten(self.traced.output_tree, results[:count]) if value else None
        return out, self._per_argument(request, results[count:], buffers)

    def _accumulate(self, runner: Runner, leading: list[Any], buffers: dict[int, Any], scale: float | None) -> Sequence[Any]:
        if scale is not None and not buffers:
            raise SignatureError("scale= goes with into=: it scales what is added to the buffers")
        if not buffers:
            return runner.call(*leading)  # type: ignore[no-any-return]
        _refuse_overlap(buffers, leading)
        targets = list(buffers.values())
        results = runner.call(*leading, 1.0 if scale is None else float(scale), *targets)
        for target, result in zip(targets, results[len(results) - len(targets):], strict=True):
            target[...] = result
        return results  # type: ignore[no-any-return]

    def _per_argument(self, request: Request, found: Sequence[Any], buffers: dict[int, Any]) -> tuple[Any, ...]:
        per_leaf: list[Any] = [None] * len(self.example_leaves)
        fresh = [leaf for leaf in request.wrt if leaf not in buffers]
        for leaf, gradient in zip(fresh, found, strict=False):
            per_leaf[leaf] = gradient
        for leaf, buffer in buffers.items():
            per_leaf[leaf] = buffer
        return tuple(_regroup(numbers, per_leaf) for numbers in self.argument_trees)

    def _differentiated(self, request: Request) -> JointGraph:
        with collector_paused():
            return differentiate(self.traced.graph, request.wrt, request.seeds, names_in_text(self.traced.graph))

    def _joint_runner(self, request: Request) -> Runner:
        found = self.runners.get(request)
        if found is None:
            joint = self._differentiated(request)
            outputs = list(joint.graph.outputs[:len(self.traced.outputs)]) if request.value else []
            graph = self._with_gradients(request, joint.graph, list(joint.cotangents), outputs)
            runner = self._runner(graph, self._kinds_of(graph, request, len(self.kinds)), joint.captured)
            found = self.runners[request] = runner._replace(origins=joint.origins)
        return found

    def _with_gradients(self, request: Request, graph: Graph, cotangents: list[int | None], outputs: list[Value]) -> Graph:
        """The graph that returns `outputs`, fresh gradients, then accumulated ones; takes scale and buffers after the seeds."""
        explicit = len(graph.inputs) - graph.captured
        record = Record()
        extra: list[Value] = []
        fresh: list[Value] = []
        added: list[Value] = []
        with record:
            if request.into:
                extra.append(input_value(tensor(F64), "scale"))
            for leaf, position in zip(request.wrt, cotangents, strict=True):
                argument = self.traced.graph.inputs[leaf]
                gradient = constant(0.0, argument.type) if position is None else graph.outputs[position]
                if leaf not in request.into:
                    fresh.append(gradient)
                    continue
                buffer = input_value(argument.type, f"{argument.name}.into")
                extra.append(buffer)
                factor = ops.broadcast(ops.cast(extra[0], dtype=argument.dtype), shape=argument.shape, axes=())
                added.append(buffer + gradient * factor)
        order = {leaf: k for k, leaf in enumerate([leaf for leaf in request.wrt if leaf in request.into])}
        accumulated = [added[order[leaf]] for leaf in request.into]
        buffers = [extra[1 + order[leaf]] for leaf in request.into]
        results = [*outputs, *fresh, *accumulated]
        inputs = [*graph.inputs[:explicit], *extra[:1], *buffers, *graph.inputs[explicit:]]
        return Graph(f"{graph.name}.backward", inputs, live_values([*graph.body, *record.values], results), results, None, graph.captured)

    def _kinds_of(self, graph: Graph, request: Request, leading: int) -> tuple[ArgumentKind, ...]:
        explicit = len(graph.inputs) - graph.captured
        kinds: list[ArgumentKind] = list(self.kinds[:leading])
        kinds += ["array"] * (explicit - leading)
        if request.into:
            kinds[explicit - len(request.into) - 1] = "float"
        return tuple(kinds)

    def _split(self, request: Request) -> Halves:
        found = self._halves.get(request)
        if found is None:
            joint = self._differentiated(request)
            seeds = [position for position in joint.seeds if position is not None]
            parts = partition(_complete(joint, request, self.traced.graph), seeds, len(self.traced.outputs))
            found = self._halves[request] = Halves(parts, joint)
        return found

    def _pull(self, request: Request, residuals: Sequence[Any], grad_outputs: Any, into: Any, scale: float | None) -> tuple[Any, ...]:
        kinds, given = self._seeds(grad_outputs)
        seeds = self._all_seeds(kinds, given)
        buffers = self._into(into, request.wrt)
        key = request._replace(into=tuple(buffers))
        runner = self.runners.get(key)
        if runner is None:
            halves = self._split(request)
            graph = self._with_gradients(key, halves.partition.adjoint, list(range(len(request.wrt))), [])
            runner = self.runners[key] = self._runner(graph, self._kinds_of(graph, key, 0), halves.joint.captured)
        arrays = [np.asarray(residual) for residual in residuals]
        results = self._accumulate(runner, [*arrays, *seeds], buffers, scale)
        return self._per_argument(key, results, buffers)

    def _all_seeds(self, kinds: tuple[str | None, ...], given: list[Any]) -> list[Any]:
        """One array per differentiable output: ones, zeros or what was given."""
        remaining = iter(given)
        seeds = []
        for kind, output in zip(kinds, self.traced.outputs, strict=True):
            if not output.dtype.is_differentiable:
                continue
            if kind == INPUT_SEED:
                seeds.append(next(remaining))
            else:
                seeds.append(np.full(output.shape, 1.0 if kind == ONE else 0.0, output.dtype.numpy))
        return seeds

    def _runner(self, graph: Graph, kinds: tuple[ArgumentKind, ...], more: Sequence[Any] = ()) -> Runner:
        explicit = len(graph.inputs) - graph.captured
        compiled = compile_graph(graph, tuple(Leaf(k) for k in range(explicit)), kinds, flat_tree(len(graph.outputs)), self.__name__)
        captured = [*self.traced.captured, *more]

        def slow(*leaves: Any) -> Any:
            return compiled.executable.run(leaves, compiled.raise_error, captured)

        try:
            call = compiled.executable.bind(slow, compiled.raise_error, captured)
        except ValueError:                       # captured arrays of a layout the native entry does not take
            call = slow
        return Runner(compiled, call, graph)


def _complete(joint: JointGraph, request: Request, forward: Graph) -> Graph:
    """The joint graph with a zero for every cotangent the outputs do not depend on."""
    record = Record()
    with record:
        cotangents = [constant(0.0, forward.inputs[leaf].type) if position is None else joint.graph.outputs[position]
                      for leaf, position in zip(request.wrt, joint.cotangents, strict=True)]
    return joint.graph.replace(body=[*joint.graph.body, *record.values],
                               outputs=[*joint.graph.outputs[:len(forward.outputs)], *cotangents])


def _regroup(numbers: Any, per_leaf: list[Any]) -> Any:
    """Leaf gradients in the argument's own tree; None for an argument without any."""
    leaves = tree.leaves(numbers)
    if all(per_leaf[k] is None for k in leaves):
        return None
    return tree.map(lambda k: per_leaf[k], numbers)


def _refuse_overlap(buffers: dict[int, Any], leading: Sequence[Any]) -> None:
    arrays = list(buffers.values())
    for k, buffer in enumerate(arrays):
        for other in arrays[:k]:
            if np.may_share_memory(buffer, other) and _share(buffer, other):
                raise SignatureError("two buffers given as into= share memory; their sums would depend on the order of writing")


def _share(buffer: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays share an element; two columns of a matrix do not.  True where that is too hard to say."""
    try:
        return np.shares_memory(buffer, other, max_work=1000)  # type: ignore[arg-type]     # NumPy's stub knows -1 and 0 only
    except np.exceptions.TooHardError:
        return True


def compile(fun: Callable[..., Any], *example_args: Any, wrt: Sequence[int] | int | None = None, mutates: Any = True) -> Program:
    """Compile fun and its backward program for arguments like example_args (arrays, or anything with shape and dtype).

    wrt      positions of the arguments that need gradients; None: every argument of floating-point dtype.
    mutates  as for `jit`: whether a call of the program writes back to arguments that fun assigns to; derivatives never do.

    Raises GradientError for a position that does not exist or is of integer dtype, SignatureError where fun assigns to its
    arguments, and whatever tracing fun raises (see `jit`).

    >>> import numpy as np, bwcompiler as bw
    >>> prog = bw.compile(lambda x, a: x @ a, np.ones((2, 3)), np.ones((3, 4)), wrt=(0,))
    >>> seed = np.array([[1.0, 2, 3, 4], [5, 6, 7, 8]])
    >>> prog.backward(np.ones((2, 3)), np.ones((3, 4)), grad_outputs=seed)[0].tolist()
    [[10.0, 10.0, 10.0], [26.0, 26.0, 26.0]]
    """
    return Program(fun, example_args, wrt, mutates)
