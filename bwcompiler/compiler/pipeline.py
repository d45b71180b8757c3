"""The pipeline: every pass from a traced graph to LLVM text, in order (`PIPELINE`), and the ways through it.

    push     graph -> graph with tangents    a function with its derivative, forward mode
    derive   graph -> joint graph            a function with its derivative, reverse mode
    split    joint graph -> two graphs       where forward and backward are separate programs
    lower    graph -> LLVM text              any of these graphs

Each reads top to bottom and runs its passes through a `PassRunner`, which refuses any other order than the table's.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from bwcompiler import ops
from bwcompiler.collector import collector_paused
from bwcompiler.compiler import called_code
from bwcompiler.compiler.lowered import Lowered
from bwcompiler.compiler.native import loops_named_in, native_libraries
from bwcompiler.compiler.options import pass_options
from bwcompiler.ir.access import root
from bwcompiler.ir.contracts.fusion import FusedProgram
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.loop import Kernel
from bwcompiler.ir.op import Value
from bwcompiler.ir.semantics.content_hash import body_hash
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.texts.graph_printer import NO_NAMES, Names
from bwcompiler.lowering.arrange_loops import arrange_loops
from bwcompiler.lowering.join_sweeps import join_sweeps
from bwcompiler.lowering.module import Module
from bwcompiler.lowering.program import emit_llvm, region_function
from bwcompiler.lowering.steps import Bodies, LoweredBody, LoweredStep, lower_steps
from bwcompiler.passes.adjoints.expand_regions import REGIONS, expand_regions
from bwcompiler.passes.adjoints.unlink_regions import unlink_regions
from bwcompiler.passes.derivatives.autodiff import JointGraph, differentiate, origins_of
from bwcompiler.passes.derivatives.expand_custom_rules import expand_custom_rules, expand_moved_rules
from bwcompiler.passes.derivatives.inline_custom_rules import inline_custom_rules
from bwcompiler.passes.derivatives.partition import Partition, partition
from bwcompiler.passes.derivatives.push_forward import TangentGraph, push_forward
from bwcompiler.passes.derivatives.unlink_custom_rules import unlink_custom_rules
from bwcompiler.passes.fusion.fuse import fuse
from bwcompiler.passes.loops.branch_states import branch_states, passed_through
from bwcompiler.passes.loops.carried.carry_elements import carry_elements
from bwcompiler.passes.loops.carried.carry_transposes import carry_transposes
from bwcompiler.passes.loops.carried.fill_rows import fill_rows
from bwcompiler.passes.loops.carried.forget_overwritten import forget_overwritten
from bwcompiler.passes.loops.carried.forget_unread import forget_unread
from bwcompiler.passes.loops.carried.promote_elements import promote_elements
from bwcompiler.passes.loops.carried.read_latest import read_latest
from bwcompiler.passes.loops.carried.set_once import set_once
from bwcompiler.passes.loops.carried.share_parts import share_parts
from bwcompiler.passes.loops.carried.share_states import share_states
from bwcompiler.passes.loops.carried.turn_columns import turn_columns
from bwcompiler.passes.loops.carried.turn_stacks import turn_stacks
from bwcompiler.passes.loops.hoist_invariants import hoist_invariants
from bwcompiler.passes.loops.iterations.reroll_loops import reroll_loops
from bwcompiler.passes.loops.iterations.split_loops import split_loops
from bwcompiler.passes.loops.iterations.unroll_and_jam import unroll_and_jam
from bwcompiler.passes.loops.iterations.unroll_loops import unroll_loops
from bwcompiler.passes.loops.narrow_sums import narrow_sums
from bwcompiler.passes.loops.prune_regions import prune_regions
from bwcompiler.passes.loops.select_branches import select_branches
from bwcompiler.passes.loops.share_bodies import may_name_line, share_bodies
from bwcompiler.passes.loops.vectorize_loops import vectorize_loops
from bwcompiler.passes.memory.clear_late import clear_late
from bwcompiler.passes.memory.plan_memory import plan_memory
from bwcompiler.passes.memory.read_written import read_written
from bwcompiler.passes.memory.save_slices import save_slices
from bwcompiler.passes.memory.skip_clears import skip_clears
from bwcompiler.passes.memory.write_beside import write_beside
from bwcompiler.passes.pass_manager import GRAPH_PASS, Before, Pass, PassOptions, PassRunner, check_order
from bwcompiler.passes.rewriting.add_products import add_products
from bwcompiler.passes.rewriting.cancel_shifts import cancel_shifts
from bwcompiler.passes.rewriting.defer_checks import defer_checks
from bwcompiler.passes.rewriting.legalize import legalize
from bwcompiler.passes.rewriting.narrow_sorts import narrow_sorts
from bwcompiler.passes.rewriting.share_results import share_results
from bwcompiler.passes.rewriting.simplify import simplify
from bwcompiler.target import Target, current_target


def _verify_kernels(steps: Sequence[LoweredStep]) -> None:
    """Those that a pass made: others, which it gives back as they came, were verified then."""
    for kernel in {id(step.kernel): step.kernel for step in steps if step.kernel is not None}.values():
        if kernel not in _verified:
            verify_kernel(kernel)
            _verified.add(kernel)


_verified: weakref.WeakSet[Kernel] = weakref.WeakSet()


# The graphs in the result of a pass.
def _graph(result: Any) -> Sequence[Graph]:
    return [result.graph]


def _none(result: Any) -> Sequence[Graph]:
    return ()


PIPELINE: tuple[Pass, ...] = (
    # a derivative
    Pass("unlink_custom_rules", unlink_custom_rules, "outputs of fwd that are linked to a custom rule -> the outputs", graphs=_graph),
    Pass("reroll_loops", reroll_loops, "iterations that stand before their loop -> the loop including these", graphs=_graph),
    Pass("share_bodies", share_bodies, "loops whose bodies differ only in numbers -> one body, with these as operands", graphs=_graph),
    Pass("expand_custom_rules", expand_custom_rules, "calls of functions with their own derivative -> fwd, linked to bwd",
         "graph -> graph, captured arrays", graphs=_graph),
    Pass("simplify", simplify, "algebraic identities, constant folding, common subexpressions, dead values", graphs=_graph),
    Pass("narrow_sums", narrow_sums, "sums over slices between data bounds, in loops -> sums over these elements, if they are few",
         graphs=_graph),
    Pass("split_loops", split_loops, "loops with choices made by their index -> loops without choices, one per range of the index",
         graphs=_graph),
    Pass("select_branches", select_branches, "choices between a few numbers in loops -> both numbers, and a selection", graphs=_graph),
    Pass("promote_elements", promote_elements, "loops that read and write one element of an array -> loops that carry this element",
         graphs=_graph),
    Pass("vectorize_loops", vectorize_loops, "loops over elements with independent iterations -> operations on arrays", graphs=_graph),
    Pass("unroll_loops", unroll_loops, "short loops that do a little to each element of large arrays -> unrolled iterations",
         graphs=_graph),
    Pass("hoist_invariants", hoist_invariants, "values that are the same in all iterations of a loop -> before the loop", graphs=_graph),
    Pass("share_states", share_states, "states of loops that are equal in every iteration -> one of them", graphs=_graph),
    Pass("forget_unread", forget_unread, "writes of loops to arrays that nothing reads -> removed", graphs=_graph),
    Pass("set_once", set_once, "additions to zeros in loops, at most one per element -> assignments", graphs=_graph),
    Pass("forget_overwritten", forget_overwritten, "arrays that a loop overwrites before it reads them -> not set before the loop",
         graphs=_graph),
    Pass("narrow_sorts", narrow_sorts, "sorts of long rows of which few elements are read -> selections of these elements", graphs=_graph),
    Pass("cancel_shifts", cancel_shifts, "extrema that are subtracted in log-sum-exps and softmaxes -> extrema without a derivative",
         graphs=_graph),
    Pass("expand_moved_rules", expand_moved_rules, "calls with their own derivative that were moved out of loops -> fwd, linked to bwd",
         "graph -> graph, captured arrays", graphs=_graph),
    Pass("push_forward", push_forward, "tangents of the outputs, simplified as they are made", "graph -> graph with tangents",
         graphs=_graph),
    Pass("share_moved_bodies", share_bodies, "loop bodies that became equal when values were moved out of them -> one body", graphs=_graph),
    Pass("expand_regions", expand_regions, "loops and branches -> versions that also return residuals, linked to their adjoints",
         "graph -> graph, captured arrays", graphs=_graph),
    Pass("differentiate", differentiate, "the reverse sweep; new values are simplified on the way", "graph -> joint graph",
         graphs=_graph),
    Pass("unlink_regions", unlink_regions, "loops and branches that are linked to their adjoints -> their results",
         "joint graph -> joint graph", graphs=_graph),
    # any graph, before it is cut or compiled
    Pass("inline_custom_rules", inline_custom_rules, "calls of functions with their own derivative -> their bodies"),
    Pass("prune_regions", prune_regions, "loops and branches without results and operands that nothing reads"),
    Pass("share_results", share_results, "eigenvalues, singular values, sorted elements -> taken from results that are computed anyway"),
    # two programs
    Pass("partition", partition, "what the forward program saves, and what the adjoint program recomputes",
         "joint graph -> forward and adjoint graph", graphs=lambda parts: [parts.forward, parts.adjoint]),
    # native code
    Pass("skip_clears", skip_clears, "parts of arrays that are cleared, and then added to -> set to what is added"),
    Pass("read_latest", read_latest, "loops that read arrays from before updates of other parts -> loops that read the updated arrays"),
    Pass("carry_transposes", carry_transposes, "matrices that loops carry and go through by columns -> carried transposed"),
    Pass("turn_columns", turn_columns, "columns that loops go through -> rows of a transposed matrix"),
    Pass("turn_stacks", turn_stacks, "stacks of transposes that are read transposed -> stacks of the original arrays"),
    Pass("fill_rows", fill_rows, "large arrays that are filled before a loop that writes to their rows -> rows filled by the loop"),
    Pass("share_parts", share_parts, "parts of arrays that loops pass to inner loops -> the whole arrays, without copies"),
    Pass("unroll_and_jam", unroll_and_jam, "loops over rows that wait for their elements, or read the same -> a few rows at a time"),
    Pass("carry_elements", carry_elements, "elements that the next iteration of a loop reads -> carried, in addition to their array"),
    Pass("clear_late", clear_late, "states of loops that end with a part set to one number -> set where the next iteration reads them"),
    Pass("write_beside", write_beside, "states that an iteration mostly overwrites -> written to new memory, with copies of the rest"),
    Pass("legalize", legalize, "ops that lowering does not accept -> ops that it accepts, simplified"),
    Pass("hoist_factors", hoist_invariants, "loop invariants that legalisation makes, such as LU factors -> before the loop",
         graphs=_graph),
    Pass("defer_checks", defer_checks, "index checks -> the worst index, found by the loops that read with it, and one comparison"),
    Pass("read_written", read_written, "values that were written to parts of arrays that are read, too -> read from the arrays"),
    Pass("save_slices", save_slices, "slices that are read after their array was updated -> copies made before"),
    Pass("add_products", add_products, "matrix products that are added to other results -> products accumulated in the memory of these"),
    Pass("fuse", fuse, "values that share one loop tree", "graph -> fusion groups and calls", graphs=_none),
    Pass("lower_steps", lower_steps, "a loop tree per group", "groups and calls -> kernels and calls", graphs=_none,
         check=_verify_kernels),
    Pass("join_sweeps", join_sweeps, "kernels that go through one axis of large arrays -> one kernel, a few iterations of each at a time",
         "kernels and calls -> kernels and calls", graphs=_none, check=_verify_kernels),
    Pass("arrange_loops", arrange_loops, "loops in rows, tiles, panels and blocks, over real numbers",
         "kernels and calls -> kernels and calls", graphs=_none, check=_verify_kernels),
    Pass("plan_memory", plan_memory, "locations of all stored values, which updates are in place", "kernels and calls -> memory plan",
         graphs=_none),
    Pass("emit_llvm", emit_llvm, "a function per distinct kernel, and the program that calls them", "kernels, plan -> LLVM text",
         graphs=_none),
)
ORDER = (
    Before("unlink_custom_rules", "expand_custom_rules", "existing links belong to derivatives that were already taken"),
    Before("unlink_custom_rules", "reroll_loops", "an iteration must look like the body"),
    Before("reroll_loops", "expand_custom_rules", "an iteration calls what the body calls"),
    Before("reroll_loops", "share_bodies", "an iteration that stands before its loop looks like the body"),
    Before("share_bodies", "expand_custom_rules", "everything derived from a body is made once"),
    Before("reroll_loops", "simplify", "more is known about the first iteration than about all, so it would look different"),
    Before("expand_custom_rules", "simplify", "the bodies of fwd are simplified with what surrounds them"),
    Before("simplify", "narrow_sums", "slices between the same bounds have one mask"),
    Before("narrow_sums", "split_loops", "loops over a few elements are treated like the user's"),
    Before("simplify", "split_loops", "comparisons of indices have one form"),
    Before("split_loops", "select_branches", "a choice that an index decides needs no selection"),
    Before("simplify", "select_branches", "facts about indices say which elements the sides read"),
    Before("select_branches", "promote_elements", "a sum of selected values is one number"),
    Before("simplify", "promote_elements", "slices look through updates of other elements"),
    Before("promote_elements", "vectorize_loops", "a sum into an element is one number, and surrounding iterations are independent"),
    Before("vectorize_loops", "expand_regions", "the derivative of array code needs no undo log and no loop"),
    Before("vectorize_loops", "push_forward", "the tangents of array code are array code"),
    Before("vectorize_loops", "unroll_loops", "a loop around a vectorised one becomes a loop over large arrays"),
    Before("unroll_loops", "expand_regions", "unrolled iterations leave no residuals that a loop stacks"),
    Before("unroll_loops", "push_forward", "the tangents of unrolled iterations are in the same sweep"),
    Before("vectorize_loops", "hoist_invariants", "a loop that becomes array code has nothing to hoist"),
    Before("unroll_loops", "hoist_invariants", "equal values of unrolled iterations are merged, and there is no loop left"),
    Before("hoist_invariants", "share_states", "equal values that were unrolled or hoisted are already merged"),
    Before("share_states", "forget_unread", "removed states need no analysis"),
    Before("forget_unread", "set_once", "other writes would prevent the assignment"),
    Before("hoist_invariants", "forget_unread", "the remaining loops are those that are compiled, with everything that they read"),
    Before("forget_unread", "expand_regions", "values that nothing reads are not kept"),
    Before("forget_unread", "push_forward", "values that nothing reads have no tangent"),
    Before("set_once", "forget_overwritten", "an addition reads the old element"),
    Before("hoist_invariants", "forget_overwritten", "the remaining loops are those that are compiled, with everything that they read"),
    Before("forget_overwritten", "expand_regions", "the old contents of an array have no cotangent"),
    Before("forget_overwritten", "push_forward", "the old contents of an array have no tangent"),
    Before("hoist_invariants", "expand_regions", "cotangents of an invariant are summed before they are propagated through it, once"),
    Before("hoist_invariants", "push_forward", "tangents of invariants are the same in all iterations too"),
    Before("hoist_invariants", "expand_moved_rules", "calls that are the same in all iterations run once, before the loop"),
    Before("expand_moved_rules", "push_forward", "a call has no tangent before it is expanded"),
    Before("expand_moved_rules", "share_moved_bodies", "bodies have the form in which they are cut in two"),
    Before("hoist_invariants", "share_moved_bodies", "bodies from which the same values were hoisted are equal"),
    Before("share_moved_bodies", "expand_regions", "a shared body is cut in two once"),
    Before("expand_moved_rules", "expand_regions", "the remaining calls are in bodies, which expand_regions expands"),
    Before("vectorize_loops", "narrow_sorts", "rows that a loop sorts become one sort, of rows"),
    Before("narrow_sorts", "push_forward", "the tangents of a selection are few elements"),
    Before("narrow_sorts", "expand_regions", "the cotangents of a selection go to few elements, without the positions of the others"),
    Before("vectorize_loops", "cancel_shifts", "a softmax that loops compute row by row becomes a softmax of arrays"),
    Before("cancel_shifts", "push_forward", "values without a derivative have no tangent"),
    Before("cancel_shifts", "expand_regions", "values without a derivative need no residuals"),
    Before("simplify", "push_forward", "equal values have one tangent"),
    Before("simplify", "expand_regions", "equal values are one residual"),
    Before("expand_regions", "differentiate", "a loop must return residuals in the run whose results are used"),
    Before("differentiate", "unlink_regions", "the sweep finds the adjoints by the links"),
    Before("unlink_regions", "inline_custom_rules", "the resulting derivative is an ordinary graph"),
    Before("simplify", "differentiate", "equal values have one cotangent: X @ w written twice gives one X.T @ ct"),
    Before("push_forward", "inline_custom_rules", "the tangent of a function with its own derivative is made by its rule"),
    Before("differentiate", "inline_custom_rules", "a custom rule must still be there for the derivative, and for that of the derivative"),
    Before("inline_custom_rules", "prune_regions", "loops are in bodies of calls too"),
    Before("prune_regions", "partition", "values that nothing reads are not saved"),
    Before("prune_regions", "share_results", "results that nothing reads are not shared"),
    Before("share_results", "partition", "what the derivative needs of a function is computed in the forward program, and saved"),
    Before("share_results", "legalize", "they are recognised by the array that the user factored or sorted"),
    Before("prune_regions", "legalize", "values that nothing reads are not compiled"),
    Before("inline_custom_rules", "partition", "values inside a call can be saved or recomputed individually"),
    Before("partition", "legalize", "residuals are values of the user's program; pads and pieces are made in the program that needs them"),
    Before("partition", "unroll_and_jam", "residuals are read where the loops of the user have written them"),
    Before("prune_regions", "unroll_and_jam", "the order of what nothing reads does not matter"),
    Before("share_parts", "unroll_and_jam", "what rows write is part of an array, not an array of each row"),
    Before("unroll_and_jam", "carry_elements", "each of the rows that run together carries elements of its own"),
    Before("partition", "carry_elements", "a carried value is a residual of every iteration, an element of an array is available"),
    Before("prune_regions", "carry_elements", "values that nothing reads are not carried"),
    Before("prune_regions", "skip_clears", "versions of arrays that nothing reads are removed"),
    Before("partition", "skip_clears", "additions to cotangents are in the program that makes them"),
    Before("skip_clears", "read_latest", "there are fewer versions"),
    Before("prune_regions", "read_latest", "versions of arrays that nothing reads are removed"),
    Before("read_latest", "carry_transposes", "updated transposes must have no other readers"),
    Before("carry_transposes", "turn_columns", "a transpose that is carried is available to inner loops"),
    Before("turn_columns", "turn_stacks", "matrices read by columns are transposed first"),
    Before("set_once", "fill_rows", "an addition to a row reads it"),
    Before("carry_transposes", "fill_rows", "rows must be contiguous in memory"),
    Before("fill_rows", "share_parts", "filled rows are available to inner loops"),
    Before("turn_stacks", "share_parts", "entries of stacks are separate arrays"),
    Before("turn_columns", "legalize", "a transpose that is an operand of a loop is stored"),
    Before("turn_columns", "share_parts", "a matrix that is read by columns is a separate array"),
    Before("share_parts", "write_beside", "arrays that inner loops update in place are not their states"),
    Before("clear_late", "write_beside", "states that are not set at the end are written over, or beside"),
    Before("write_beside", "legalize", "the copies that it makes are legalised with the others"),
    Before("share_parts", "legalize", "the reads that it makes are legalised with the others"),
    Before("carry_elements", "legalize", "the reads that it makes are legalised with the others"),
    Before("legalize", "hoist_factors", "solves, inverses and determinants of one matrix share factors that legalisation makes"),
    Before("hoist_factors", "defer_checks", "indices that are the same in all iterations are checked once, before the loop"),
    Before("legalize", "defer_checks", "legalisation rules look for indices with separate checks"),
    Before("defer_checks", "save_slices", "which elements are read is known only for the ops that native code runs"),
    Before("hoist_factors", "fuse", "hoisted values are not part of the kernels of the loop's body"),
    Before("legalize", "save_slices", "what is read from an array, and when, is known for legal ops"),
    Before("legalize", "read_written", "simplification reads the values themselves"),
    Before("read_written", "save_slices", "slices that are read after the next update have to be copied"),
    Before("save_slices", "fuse", "an update is in place where nothing reads the array afterwards"),
    Before("hoist_factors", "add_products", "a product that is the same in all iterations is computed before the loop"),
    Before("save_slices", "add_products", "copies of slices are made of values as they are"),
    Before("add_products", "fuse", "an accumulated product reads the result that it is added to"),
    Before("legalize", "fuse", "fusion accepts only ops with an element rule, reductions and calls"),
    Before("fuse", "lower_steps", "a kernel is a fusion group"),
    Before("lower_steps", "join_sweeps", "whether two loops can be joined is decided by their offsets"),
    Before("join_sweeps", "arrange_loops", "rows, tiles and blocks are those of the loops that run"),
    Before("arrange_loops", "plan_memory", "kernels state what they read, write, update and need as scratch"),
    Before("plan_memory", "emit_llvm", "the program passes addresses"),
)
check_order(PIPELINE, ORDER)
GRAPH_PASSES = tuple([step for step in PIPELINE if step.kind == GRAPH_PASS])        # what `bwc run-pass` takes


_OVER_ARRAYS = (narrow_sums, split_loops, select_branches, promote_elements, vectorize_loops, unroll_loops, hoist_invariants,
                share_states, forget_unread, set_once, forget_overwritten, narrow_sorts)


def push(graph: Graph, wrt: Sequence[int], wanted: Sequence[bool] | None = None, options: PassOptions | None = None,
         apart: bool = False, scope: Sequence[Index] = ()) -> TangentGraph:
    """The graph, inside of loops with the indices `scope`, with tangents of its outputs for tangents of its inputs `wrt`: see
    `push_forward`."""
    with collector_paused():
        run = PassRunner(PIPELINE, options or pass_options(), scope)
        rerolled = run(reroll_loops, run(unlink_custom_rules, graph).graph)
        shared = run(share_bodies, rerolled.graph)
        expanded = run(expand_custom_rules, shared.graph, wrt, REGIONS)
        simplified = run(simplify, expanded.graph)
        vectorized, _ = _over_arrays(run, simplified.graph)
        moved = run(expand_moved_rules, run(cancel_shifts, vectorized).graph, wrt, REGIONS)
        pushed = run(push_forward, moved.graph, wrt, wanted, apart, REGIONS)
        return pushed._replace(captured=(*expanded.arrays, *moved.arrays, *pushed.captured), passes=run.runs)


def _over_arrays(run: PassRunner, graph: Graph) -> tuple[Graph, list[Mapping[Value, Value]]]:
    """The graph with array operations instead of loops, and per pass the replacements of values."""
    mappings = []
    for function in _OVER_ARRAYS:
        graph, mapping = run(function, graph)
        mappings.append(mapping)
    return graph, mappings


def derive(graph: Graph, wrt: Sequence[int], seeds: Sequence[str | None], names: Names = NO_NAMES,
           options: PassOptions | None = None, scope: Sequence[Index] = ()) -> JointGraph:
    """The joint graph of a traced graph, whose text has `names`, inside of loops with the indices `scope`: see `differentiate`."""
    called_code.begin(graph, current_target())
    with collector_paused():
        run = PassRunner(PIPELINE, options or pass_options(), scope)
        untied = run(unlink_custom_rules, graph)
        rerolled = run(reroll_loops, untied.graph)
        shared = run(share_bodies, rerolled.graph)
        expanded = run(expand_custom_rules, shared.graph, wrt, REGIONS)
        simplified = run(simplify, expanded.graph)
        vectorized, over_arrays = _over_arrays(run, simplified.graph)
        shifted = run(cancel_shifts, vectorized)
        moved = run(expand_moved_rules, shifted.graph, wrt, REGIONS)
        alike = run(share_bodies, moved.graph)
        looped = run(expand_regions, alike.graph, wrt, seeded=[k for k, seed in enumerate(seeds) if seed is not None])
        origins = origins_of(graph, untied.mapping, rerolled.mapping, shared.mapping, expanded.mapping, simplified.mapping, *over_arrays,
                             shifted.mapping, moved.mapping, alike.mapping, looped.mapping)
        joint = run(differentiate, looped.graph, wrt, seeds, names, origins)
        joint = run(unlink_regions, joint)
        return joint._replace(captured=(*expanded.arrays, *moved.arrays, *looped.arrays, *joint.captured), passes=run.runs)


def split(joint: Graph, seeds: Sequence[int], outputs: int, memory_limit: int | None = None,
          options: PassOptions | None = None) -> Partition:
    """A joint graph as two programs: see `partition`."""
    with collector_paused():
        run = PassRunner(PIPELINE, options or pass_options())
        joint = run(share_results, run(prune_regions, run(inline_custom_rules, joint)))
        return run(partition, joint, seeds, outputs, memory_limit)._replace(passes=run.runs)


def lower(graph: Graph, into: Sequence[int | None] = (), target: Target | None = None, options: PassOptions | None = None,
          begin: Callable[[str], None] | None = None) -> Lowered:
    """A graph as LLVM text for a target (by default the current one), with all stages on the way.

    Result k is written to the memory of input into[k], where that is a number.  begin: is told the parts of the text, as modules of
    their own, each as soon as it is complete.
    """
    target = target or current_target()
    with collector_paused():
        options = options or pass_options()
        run = PassRunner(PIPELINE, options)
        alike = run(share_bodies, run(reroll_loops, graph).graph)
        vectorized, _ = _over_arrays(run, alike.graph)
        shared = run(share_results, run(prune_regions, run(inline_custom_rules, vectorized)))
        turned = run(turn_stacks, run(turn_columns, run(carry_transposes, run(read_latest, run(skip_clears, shared)))))
        carried = run(carry_elements, run(unroll_and_jam, run(share_parts, run(fill_rows, turned))))
        legal = run(legalize, run(write_beside, run(clear_late, carried)))
        legal = run(hoist_invariants, legal).graph
        legal = run(read_written, run(defer_checks, legal) if _is_beside(into) else legal)
        legal = run(add_products, run(save_slices, legal))
        fused = run(fuse, legal)
        found = native_libraries()
        module = Module(found._replace(symbols=found.symbols.union(loops_named_in(legal))), target, begin)
        steps = _kernels(run, legal, fused, into, _Bodies(module, options).of_graph(legal))
        plan = run(plan_memory, legal, steps, into)
        program = run(emit_llvm, legal, steps, plan, module, into)
        return Lowered(graph, legal, fused, steps, plan, program, target, run.runs, tuple(into))


def _is_beside(into: Sequence[int | None]) -> bool:
    """Whether all results have memory of their own: the caller's arrays must not be written to before all indices are in range."""
    return all(number is None for number in into)


Scope: TypeAlias = "tuple[Index, ...]"


class _Bodies:
    """Lowers the bodies of loops and branches; equal bodies, such as those that a backward pass recomputes, only once.

    The functions of the loops and branches are written to the module at once.
    """

    def __init__(self, module: Module, options: PassOptions) -> None:
        self._module = module
        self._options = options
        self._known: dict[tuple[str, tuple[int | None, ...]], LoweredBody] = {}

    def of_graph(self, graph: Graph, scope: Scope = (), prefix: str = "") -> dict[Value, tuple[LoweredBody, ...]]:
        """The bodies of the loops and branches of a legal graph, as steps with memory plans.

        scope: the indices of the loops around the graph, outermost first.  prefix: of the names of the bodies' kernels.
        """
        found: dict[Value, tuple[LoweredBody, ...]] = {}
        for value in graph.body:
            if value.op.kind != "region":
                continue
            name = f"{prefix}b{len(found)}"
            if value.op is ops.cond:
                found[value] = self._branches(value, scope, name)
            else:
                carried = value.attrs["carried"]
                found[value] = tuple([
                    self._body(value.attrs[region], range(carried if region == "body" else 0), scope, f"{name}{region[0]}.")
                    for region in value.op.regions])
            region_function(self._module, value, found[value], scope)
        return found

    def _branches(self, cond: Value, scope: Scope, name: str) -> tuple[LoweredBody, ...]:
        """The branches of a `cond`.  An array that both update is updated in place, unless one of them needs the result in new memory."""
        states = branch_states(cond)
        into = [states.get(number) for number in range(len(cond.type.items))]
        bodies = [self._body(cond.attrs[region], into, scope, f"{name}{region[0]}.") for region in cond.op.regions]
        beside = {number for body in bodies for number in body.swapped}
        if not beside:
            return tuple(bodies)
        agreed = tuple([None if number in beside else place for number, place in enumerate(into)])
        return tuple([replace(body, into=agreed, swapped=(), plan=plan_memory(body.graph, body.steps, agreed)) for body in bodies])

    def _body(self, graph: Graph, over: Sequence[int | None], scope: Scope, prefix: str) -> LoweredBody:
        """One body.  over: per result the input that it overwrites; if that is still read at the end, the result gets new memory."""
        key = body_hash(graph, scope, may_name_line), tuple(over)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._lowered(graph, over, scope, prefix)
        return found

    def _lowered(self, graph: Graph, over: Sequence[int | None], scope: Scope, prefix: str) -> LoweredBody:
        run = PassRunner(PIPELINE, self._options, scope)
        legal = run(legalize, run(carry_elements, run(unroll_and_jam, run(prune_regions, run(inline_custom_rules, graph)))))
        states = [legal.inputs[place] for place in over if place is not None]
        legal = run(add_products, run(save_slices, run(read_written, legal), states))
        fused = run(fuse, legal, False, states)
        into = tuple(over)
        inside = scope if graph.index is None else (*scope, graph.index)
        steps = _kernels(run, legal, fused, into, self.of_graph(legal, inside, prefix), prefix)
        plan = plan_memory(legal, steps, into)
        computed = {number for value, number in plan.copies if value not in legal.inputs}
        if computed:
            into = tuple([None if number in computed else place for number, place in enumerate(into)])
        plan = run(plan_memory, legal, steps, into)
        return LoweredBody(legal, steps, plan, into, tuple(sorted(computed)))


def _kernels(run: PassRunner, graph: Graph, fused: FusedProgram, into: Sequence[int | None], bodies: Bodies,
             prefix: str = "") -> Sequence[LoweredStep]:
    """The steps of a fused graph; prefix: of their kernels' names."""
    pairs = _pairs(graph, into)
    return run(arrange_loops, run(join_sweeps, run(lower_steps, fused, bodies, prefix), graph, pairs, prefix), pairs)


def _pairs(graph: Graph, into: Sequence[int | None]) -> dict[Value, Value]:
    """Results that are written to inputs, and what these are updates of; and the inputs."""
    found: dict[Value, Value] = {}
    for output, number in zip(graph.outputs, into, strict=False):
        value: Value | None = None if number is None else root(output)
        while value is not None and value.op.kind != "input" and number is not None:
            found[value] = graph.inputs[number]
            before = value.operands[0] if value.op in ops.UPDATES else passed_through(value) if value.op is ops.item else None
            value = None if before is None else root(before)
    return found
