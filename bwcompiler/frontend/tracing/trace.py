"""`trace`: from a Python function and its arguments to a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import BwError, TracerError, UnsupportedError
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, ArgumentType, argument_type, name_of_path, take_apart
from bwcompiler.frontend.tracing.boundary.asked_numbers import AskedNumbers
from bwcompiler.frontend.tracing.boundary.known_arrays import KnownArrays, assuming, knowing_arrays, knowing_floats, known_in
from bwcompiler.frontend.tracing.boundary.results import as_nodes, checked, checked_result, result_kind, result_value
from bwcompiler.frontend.tracing.boundary.trace_result import OutsideReads, TraceResult
from bwcompiler.frontend.tracing.outside.argument_contents import ArgumentContents, stand_ins
from bwcompiler.frontend.tracing.outside.before import Before
from bwcompiler.frontend.tracing.outside.kinds import containers_in
from bwcompiler.frontend.tracing.outside.reads import Outside
from bwcompiler.frontend.tracing.outside.rebinding import followed
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead
from bwcompiler.frontend.tracing.outside.varying import Written, narrowed, replaced, without
from bwcompiler.frontend.tracing.policy import Misremembered, MovesWithData, Policy, Recapture, Reconsidered, Site
from bwcompiler.frontend.tracing.provenance.source import observe_below, stop_at
from bwcompiler.frontend.tracing.provenance.user_names import name_values
from bwcompiler.frontend.tracing.refusals.foreign_calls import foreign_refusal
from bwcompiler.frontend.tracing.refusals.notes import add_notes
from bwcompiler.frontend.tracing.refusals.tracebacks import hidden_refusal, user_traceback, with_users_line
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.memory_order import C_ORDER, Layout
from bwcompiler.frontend.tracing.storages.region import Region, StaticDemand, Storage, active_region, open_region
from bwcompiler.frontend.tracing.tracer import ArrayTracer, ScalarTracer, Tracer, fresh
from bwcompiler.ir.graph import cut
from bwcompiler.ir.source import Source


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TraceOptions:
    """How `trace_arguments` traces a function.

    name            of the graph, if not the function's; outer: the user's line that it belongs to, where no line of his is running.
    argument_types  of the dynamic leaves, in place of what these say.
    autoloop        whether loops and branches are captured from the source; inside of another trace that one decides.  Where the
                    function cannot be traced so, but with all its loops unrolled, it is.  unrolled: that at once.
    any_results     whether results may be texts and types, and have as many elements as data says (`results`).
    windows         whether slices of known sizes may be views although NumPy might cut them: who calls the program then traces again
                    where it raises IndexError.  Not where the function assigns to its arguments, which then may have changed.
    floats          whether numbers of floats may be had, where the function is refused otherwise: who calls compiles again for other ones.
    assumes         whether numbers that data decide may be taken for what they are now (`assumed`), likewise.
    varying         numbers and arrays outside that are to be inputs, and arrays whose contents the program is to read; what the function
                    needs to know after all is not (`OutsideReads`).
    rebound         where objects outside were seen to be replaced as wholes.
    """

    name: str | None = None
    outer: Source | None = None
    argument_types: Sequence[ArgumentType] | None = None
    autoloop: bool = True
    unrolled: bool = False
    any_results: bool = False
    windows: bool = False
    floats: bool = False
    assumes: bool = False
    varying: Sequence[OutsideRead] = ()
    rebound: Sequence[OutsideRead] = ()


_DEFAULTS = TraceOptions()


def trace(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None, *,
          static_argnums: int | Iterable[int] = (), static_argnames: str | Iterable[str] = (), name: str | None = None,
          argument_types: Sequence[ArgumentType] | None = None, autoloop: bool = True, outer: Source | None = None) -> TraceResult:
    """Run fun on handles and return what it computed.

    Leaves of args and kwargs are arrays, NumPy scalars, Python numbers, handles of an enclosing trace, or anything with
    shape and dtype; other leaves are compile-time values.  `argument_types` overrides what the leaves say.  An integer that
    fun asks for its number becomes a compile-time value, and fun is traced again.  outer: the user's line that it belongs to, where no
    line of his is running.
    """
    arguments = take_apart(fun, args, kwargs, static_argnums, static_argnames)
    return trace_arguments(fun, arguments, TraceOptions(name=name, argument_types=argument_types, autoloop=autoloop, outer=outer))


def trace_arguments(fun: Callable[..., Any], arguments: Arguments, options: TraceOptions = _DEFAULTS) -> TraceResult:
    """As `trace`, of arguments that have been taken apart; those that fun asks for become static in them.

    So do arrays of integers whose numbers have to be known (`known_arrays`).
    """
    region = active_region()
    if region is not None:
        if options.argument_types is None:         # what is known is not asked for, each with another trace
            known = {} if region.policy is None or region.policy.known is None else region.policy.known.arrays
            arguments.also_static([position for position in arguments.dynamic if type(arguments.leaves[position]) in (int, bool)
                                   or (id(arguments.leaves[position]) in known and arguments.leaves[position].dtype.kind in "biu")])
        return _traced(fun, arguments, options, None)

    def attempt(known: KnownArrays) -> TraceResult:
        known.arrays_asked = first.arrays_asked    # all that is asked for in any of them
        return _in_ways(fun, arguments, options, known)

    first = known_in(arguments)
    try:
        return attempt(first)
    except BwError as error:
        refusal: Exception = error.with_traceback(user_traceback(error.__traceback__))
    except RecursionError as error:                # a recursion that ends by numbers in an array, perhaps
        refusal = error
    again: Any = None
    if options.argument_types is None and isinstance(refusal, TracerError | UnsupportedError | RecursionError):
        found = knowing_floats(arguments, attempt) if options.floats and first.floats_asked else None
        if isinstance(found, TraceResult):
            return found
        refusal = refusal if found is None else found
        again = knowing_arrays(arguments, attempt)
        if options.assumes and options.autoloop and not isinstance(again, tuple):
            assumed = assuming(arguments, attempt)
            if assumed is not None:
                return assumed
        known = 0
        while not isinstance(again, tuple) and options.floats and len(first.arrays_asked) > known:
            known = len(first.arrays_asked)
            again = knowing_arrays(arguments, attempt, first.arrays_asked)
            refusal = again.with_traceback(user_traceback(again.__traceback__)) if isinstance(again, BwError) else refusal
        again = again if isinstance(again, tuple) else knowing_arrays(arguments, attempt, first.arrays_asked, integers=True)
    if not isinstance(again, tuple):
        raise refusal
    result: TraceResult = again[0]
    result.demanded.update(dict.fromkeys(again[1]))
    return result


def _in_ways(fun: Callable[..., Any], arguments: Arguments, options: TraceOptions, known: KnownArrays) -> TraceResult:
    """As it is captured; where that is refused, with all loops unrolled."""
    policy = Policy(options.autoloop)
    policy.known = known
    policy.loops = not options.unrolled
    policy.any_results = options.any_results
    policy.assumes, policy.decides = known.assumes, known.decides
    windows = policy.windows = policy.real_results = options.windows     # a refusal may also set policy.windows
    refused: BwError | None = None                 # the first way's error, which is told if none of the simpler ways does
    while True:
        try:
            found = _traced(fun, arguments, options, policy)
            found.unrolled_for = None if refused is None else str(refused)
            if found.assumed and found.mutated:    # which may have changed where the program is interrupted
                raise UnsupportedError("a function that assigns to its arguments cannot be compiled for numbers that data decide")
            if not windows or not found.may_be_cut or not found.mutated:
                return found
            windows = policy.windows = policy.real_results = False
        except Exception as error:
            may_go_without = policy.converting and policy.met and not policy.needed
            if refused is not None and not may_go_without:
                raise refused from None
            if not isinstance(error, BwError) or not may_go_without:
                raise
            refused = refused or error
            policy.converting, policy.loops = policy.loops, False          # first without captured loops, then as it is written


def _traced(fun: Callable[..., Any], arguments: Arguments, options: TraceOptions, policy: Policy | None) -> TraceResult:
    """Trace until nothing more is asked for; the policy is that of the outermost region."""
    varying = options.varying
    asked = AskedNumbers(arguments)
    given = None if options.argument_types is None else dict(zip(arguments.dynamic, options.argument_types, strict=True))
    if given is None and (policy is None or policy.converting):
        asked.foresee(fun)
    while True:
        names = arguments.dynamic_names()
        types = [given[position] for position in arguments.dynamic] if given is not None else [
            argument_type(leaf, where) for leaf, where in zip(arguments.dynamic_leaves, names, strict=True)]
        region = Region(options.name or str(getattr(fun, "__name__", "function")))
        region.outer = options.outer
        if policy is not None:
            policy.restart()
            region.policy = policy
        try:
            outcome = _trace_once(fun, arguments, types, names, region, asked, varying, options.rebound)
        except StaticDemand as demand:
            if demand.region is not region:
                raise
            if any(number >= len(types) for number in demand.numbers):
                varying = without(varying, [number - len(types) for number in demand.numbers])
            else:
                asked.answer(demand, keeps_floats=policy is None)
        except Written as found:
            varying = without(varying, found.numbers)
        except Reconsidered as found:
            if policy is None:
                raise
            policy.heavy.update((found.site, *found.more))
        except MovesWithData as found:
            if policy is None:
                raise
            policy.by_data.update(found.sites)
        except Misremembered:
            if policy is None:
                raise
        except Recapture as found:
            _unroll(found, policy)
        except Exception:                          # of the user's, perhaps as he found a handle where there was a number
            if _may_go_on(policy):
                continue
            if not varying:
                raise
            varying = narrowed(varying)
        else:
            if not isinstance(outcome, BwError):
                return _with_notes(outcome, policy)
            if _may_go_on(policy) or _unroll_guarded(policy, outcome) or _unroll_short(policy, outcome):
                continue
            if not varying:
                first = None if policy is None else policy.refused
                raise first or outcome from None   # here, so that our frames below are not in its traceback
            varying = narrowed(varying)


def _unroll(found: Recapture, policy: Policy | None) -> None:
    """The loop that cannot be captured after all is unrolled the next time; raises where it was."""
    if policy is None:
        raise found
    if found.site in policy.unrolled:
        if _forget_foreseen(policy):
            return
        raise found.refusal from None
    foreseen = [] if policy.foreseen is None else [site for site in found.foreseen if site not in policy.unrolled]
    if all(site != found.site for _, site in policy.made.values()):        # a loop: what is computed in it may have narrower types now
        policy.carrying.clear()
    if policy.foreseen is not None:
        policy.foreseen.update(foreseen)
    policy.unrolled.update(dict.fromkeys((found.site, *found.more, *foreseen), found.why))


def _may_go_on(policy: Policy | None) -> bool:
    """Whether the function, which is refused, is to be traced in another way."""
    return policy is not None and (bool(HANDLERS["granted"](policy)) or _forget_foreseen(policy))


def _unroll_guarded(policy: Policy | None, refusal: BwError) -> bool:
    """Whether loops that have `try` are unrolled now: what they raise and catch, and count, may be known then, which may be asked for."""
    return policy is not None and _unroll_all(policy.guarded, "it has `try`", policy, refusal)


def _unroll_short(policy: Policy | None, refusal: BwError) -> bool:
    """Whether short loops that are recorded, as their iterations are long, are unrolled now: more is known in these then."""
    if policy is None or not _unroll_all(policy.heavy, "it is short", policy, refusal):
        return False
    policy.heavy.clear()
    policy.bounded.clear()                         # keys may be known now
    return True


def _unroll_all(sites: Iterable[Site], what: str, policy: Policy, refusal: BwError) -> bool:
    """Unroll loops from now on, as the function is refused where they are recorded; whether there are any."""
    new = [site for site in sites if site not in policy.unrolled]
    policy.unrolled.update(dict.fromkeys(new, f"{what}, and the function is refused where it is recorded"))
    policy.refused = policy.refused or (refusal if new else None)
    policy.carrying.clear()
    return bool(new)


def _forget_foreseen(policy: Policy | None) -> bool:
    """Whether arrays are traced ones that need not be, which may be why the function is refused: now they aren't."""
    if policy is None or not policy.foreseen:
        return False
    for site in policy.foreseen:
        policy.unrolled.pop(site, None)
    policy.foreseen = None
    return True


def _with_notes(result: TraceResult, policy: Policy | None) -> TraceResult:
    """With what the policy of the outermost region has to say of loops."""
    if policy is not None:
        result.notes = list(policy.notes.items())
        result.loops = [(site, text) for site, text in policy.captured.items() if site not in policy.notes]
        result.may_be_cut = policy.may_be_cut or policy.may_be_complex
        result.assumed = tuple(policy.assumed)
        result.may_unroll = policy.loops and policy.met and not policy.needed
    return result


def _trace_once(fun: Callable[..., Any], arguments: Arguments, types: list[ArgumentType], names: list[str], region: Region,
                asked: AskedNumbers, varying: Sequence[OutsideRead], rebound: Sequence[OutsideRead]) -> TraceResult | BwError:
    with region:
        before = Before(region, fun)
        operands_of = [found for found in varying if found.read.kind != "bytes"]
        live = [found for found in varying if found.read.kind == "bytes"]
        if region.policy is not None and region.parent is None:
            region.policy.live = [found.read.base for found in live]
        inputs = [_input(region, type_, where) for type_, where in zip(types, names, strict=True)]
        region.passed = arguments.dynamic_leaves
        for position, storage in zip(arguments.dynamic, inputs, strict=True):
            storage.demandable = storage.demandable and position not in asked.unknown
            if position in asked.floats:
                region.numbers[storage.value] = np.asarray(asked.floats[position], storage.type.dtype.numpy)
        operands = [_operand(region, found) for found in operands_of]
        handles = [_handle(storage, type_) for storage, type_ in zip(inputs, types, strict=True)]
        args, kwargs = arguments.with_leaves(handles)
        with replaced(operands_of, operands), before:
            try:
                outside = _observed(region, fun, arguments, [args, kwargs], operands, before)
                held = None if outside is None else ArgumentContents(arguments.by_name(args, kwargs))
                result = run_user_function(fun, args, kwargs)
                if held is not None:
                    held.look_again()
            except Exception as error:
                if region.demand is not None:      # somebody put an exception of his own in its place
                    raise region.demand from None
                ours = error if isinstance(error, BwError) else hidden_refusal(region, error) or foreign_refusal(error)
                if ours is None:
                    found = HANDLERS["as_local"](error) if type(error) is NameError else error
                    if found is not error:
                        raise found from None
                    add_notes(error, (*arguments.args, *arguments.kwargs.values()), region.parent is None)
                    raise
                return with_users_line(ours, error.__traceback__).with_traceback(user_traceback(error.__traceback__))
            made = finish(region, result, arguments, types, names, asked.demanded)
            assigned = [number for number, storage in enumerate(region.arguments[len(types):]) if storage.written]
            if assigned:
                raise Written(assigned)
            before.stays()
        if outside is not None:
            inside = {found.read.place for found in operands_of}
            if held is not None:
                held.warn_of_changes(result, fun)
            reads = followed(outside.settle(), rebound, fun, arguments.static_values)
            made.outside = OutsideReads([found for found in reads if found.read.place not in inside], operands_of, live)
        return made


observe_below(_trace_once.__code__)


def _observed(region: Region, fun: Callable[..., Any], arguments: Arguments, passed: Any, operands: Sequence[Any],
              before: Before) -> Outside | None:
    """What the function reads from outside, seen from now on; of an outermost trace."""
    made = stand_ins(passed, set(map(id, arguments.static_values)))
    if region.parent is not None:
        if region.observer is not None:
            region.observer.made(made)
        return None
    region.observer = outside = Outside(before)
    outside.made([*made, *[container for operand in operands for container in containers_in(operand)]])
    outside.function(fun, arguments.whole_statics())
    arguments.observe_statics(outside.static_argument)
    return outside


def _operand(region: Region, found: OutsideRead) -> Any:
    """Inputs of the region in the place of what is read."""
    leaves, treedef = tree.flatten(found.read.expected)
    names = [name_of_path(path) for path in tree.treedef_paths(treedef, found.path)]
    types = [argument_type(leaf, name) for leaf, name in zip(leaves, names, strict=True)]
    return tree.unflatten(treedef, [_handle(_input(region, type_, name), type_) for type_, name in zip(types, names, strict=True)])


def run_user_function(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls it; call chains of sources end here."""
    return captured_form(fun)(*args, **kwargs)


stop_at(run_user_function.__code__)


def captured_form(fun: Callable[..., Any]) -> Callable[..., Any]:
    """What is called in the place of a function: its control flow is captured, if that is to be and can be."""
    policy = open_region().policy
    if policy is None or not policy.converting:
        return fun
    return HANDLERS["captured_form"](fun)  # type: ignore[no-any-return]


def call_user(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], autoloop: bool = True) -> Any:
    """fun(*args, **kwargs) inside of a trace, with its control flow captured."""
    policy = open_region().policy
    if autoloop or policy is None or not policy.converting:
        return captured_form(fun)(*args, **kwargs)
    assumes = policy.assumes
    policy.converting = policy.assumes = False
    try:
        return fun(*args, **kwargs)
    finally:
        policy.converting, policy.assumes = True, assumes


def finish(region: Region, result: Any, arguments: Arguments, types: list[ArgumentType], names: list[str],
           demanded: dict[int, Source | None]) -> TraceResult:
    """The graph of what a region (still open) computed."""
    if region.policy is not None and region.policy.any_results and region.parent is None:
        result = as_nodes(result)
    if region.policy is not None and (region.policy.choices or region.policy.gaps) and not region.policy.depth:
        result = HANDLERS["returned_choices"](result)
    leaves, output_tree = tree.flatten(result)
    mutated = {k: storage.value for k, storage in enumerate(region.arguments[:len(types)])
               if storage.value is not region.argument_inputs[k]}
    assigned = {k: region.read(storage) for k, storage in enumerate(region.lifted)
                if region.read(storage) is not region.lifted_inputs[k]}
    only_checks = bool(region.checks and not (leaves or mutated or assigned))
    if only_checks:
        leaves, output_tree = tree.flatten(checked_result(result, fresh(region.checks[-1])))
    outputs = tuple([result_value(leaf, position, output_tree) for position, leaf in enumerate(leaves)])
    region.settle_captures()
    if region.checks:
        outputs, mutated, assigned = checked(region.checks, outputs, mutated, assigned)
    name_values(region.record.values)
    graph = cut(region.name, (*region.argument_inputs, *region.lifted_inputs, *region.capture_inputs), region.record.values,
                (*outputs, *mutated.values(), *assigned.values()), captured=len(region.captured))
    lifted = [_whole(storage) for storage in region.lifted]
    written = {k for k, storage in enumerate(region.arguments[:len(types)]) if storage.written}
    for k in written:
        leaf = arguments.dynamic_leaves[k]
        if isinstance(leaf, Tracer):
            leaf._storage.written = True
    return TraceResult(graph, arguments=arguments, argument_types=types, input_names=names, demanded=demanded, mutated=mutated,
                       written=written, layout_dependent=frozenset(region.layouts_asked), outputs=outputs, output_tree=output_tree,
                       result_kinds=tuple([result_kind(leaf) for leaf in leaves]), only_checks=only_checks, captured=region.captured,
                       lifted=lifted, assigned=assigned)


def _whole(storage: Storage) -> Tracer:
    cls = ArrayTracer if storage.type.shape else ScalarTracer
    return cls(storage, (), storage.type, storage.type.dtype)


def _input(region: Region, argument: ArgumentType, name: str) -> Storage:
    storage = region.argument(argument.type, name)
    storage.writable = not argument.scalar
    known = None if region.policy is None else region.policy.known
    storage.demandable = argument.scalar and (argument.type.dtype.kind in "biu" or (
        argument.type.dtype.kind == "f" and known is not None and known.floats))
    storage.layout = _asked_layout(region, len(region.arguments) - 1, argument)
    return storage


def _asked_layout(region: Region, leaf: int, argument: ArgumentType) -> Layout:
    """The argument's layout, which notes that it was asked for."""
    if argument.type.size < 2:
        return C_ORDER

    def answer() -> tuple[int, ...] | None:
        region.layouts_asked.add(leaf)
        return argument.layout.strides()

    return Layout(answer, [argument.layout])


def _handle(storage: Storage, argument: ArgumentType) -> Tracer:
    made = _whole(storage)
    if argument.weak is not None:
        made._kind = argument.weak
    return made
