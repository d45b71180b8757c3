"""Exceptions and messages that depend on traced values: `if x < 0: raise ValueError(...)`, `assert`, `print` in a branch.

A side of a branch that raises becomes a check: if it fails, the program calls back, and the caller gets that exception, with the values
at that time in its text.  The check returns a number, 0, for which the outputs of its region wait (`Region.checks`).
"""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any, NoReturn

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import BwError, LeftOutWarning, TracerBoolError, TracerError, UnsupportedError, at
from bwcompiler.frontend.source.effects.complaints import caught, complaining, numpy_errors, numpy_warnings
from bwcompiler.frontend.source.effects.places import Scope
from bwcompiler.frontend.source.variables import Again, Divided, NotCapturable, open_policy
from bwcompiler.frontend.tracing.callbacks import Struct, host_call
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.branches import cond
from bwcompiler.frontend.tracing.control_flow.failures import failing
from bwcompiler.frontend.tracing.control_flow.loops import as_truth
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.policy import Policy, Recapture
from bwcompiler.frontend.tracing.provenance.source import current_source, is_hidden, levels_to_the_user
from bwcompiler.frontend.tracing.refusals.foreign_calls import foreign_refusal
from bwcompiler.frontend.tracing.refusals.tracebacks import failed_here, hidden_refusal, with_users_line
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import Region, StaticDemand, open_region
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.extent import lower, upper
from bwcompiler.ir.op import Value
from bwcompiler.ir.source import Source
from bwcompiler.ir.types import F64, tensor

_DIVIDING = frozenset((ops.divide, ops.floor_divide, ops.remainder))
_DIVISION_ERRORS = frozenset(("ArithmeticError", "ZeroDivisionError"))      # that Python raises where NumPy gives inf or nan
_OURS = re.compile("'(Array|Scalar)Tracer'")           # in what Python says of operands
_PLACE = re.compile("\0(\\d+)\0")      # of a traced value in a text: see Tracer.__format__


def raised(error: Any) -> Any:
    """What a `raise` statement raises: noted, so that it is told from errors of tracing."""
    policy = open_policy()
    if policy is not None and policy.depth:
        if isinstance(error, type) and issubclass(error, BaseException):
            error = error()
        policy.raised = error
    return error


def is_raised(error: BaseException) -> bool:
    """Whether a `raise` or `assert` of the user's raised it, in a body that is being traced."""
    policy = open_policy()
    return policy is not None and policy.raised is error


def raises_when_taken(error: Exception, policy: Policy) -> bool:
    """Whether a side of a branch raises what Python does if that side is taken: shapes that do not fit, an index out of range, no value.

    Not in a loop, where shapes that move may have to be found first: that is unrolled.  Of errors about types and attributes only those
    about None, which is what it is: others may be about something that stands for the user's values.
    """
    is_of_none = isinstance(error, TypeError | AttributeError) and "NoneType" in str(error)
    is_pythons = isinstance(error, ValueError | IndexError | KeyError | NameError) or (
        is_of_none and (isinstance(error, BwError) or not failed_here(error)))
    return is_pythons and not any(scope.loop is not None for scope in policy.scopes) and _refusal(error) is None


def as_local(error: BaseException) -> BaseException:
    """What Python raises where a variable has no value: UnboundLocalError for one of the function whose loop, branch or `try` reads it.

    A body is a function of its own here, to which it is a variable of a function around it: that is a NameError.
    """
    traceback = error.__traceback__
    if type(error) is not NameError or traceback is None:
        return error
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    frame: FrameType | None = traceback.tb_frame
    function = traceback.tb_frame.f_code.co_name                       # bodies have the name of theirs
    while frame is not None and (is_hidden(frame.f_code) or (frame.f_code.co_name == function and error.name in frame.f_code.co_freevars)):
        frame = frame.f_back
    if frame is None or frame.f_code.co_name != function or error.name not in frame.f_code.co_cellvars:
        return error
    made = UnboundLocalError(f"cannot access local variable '{error.name}' where it is not associated with a value")
    made.name = error.name
    return made.with_traceback(error.__traceback__)


HANDLERS["as_local"] = as_local


def error_source(error: BaseException) -> Source | None:
    """The line of the user's that raised it."""
    traceback, found = error.__traceback__, None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_hidden(code):
            found = Source(code.co_filename, traceback.tb_lineno, 0, code.co_name)
        traceback = traceback.tb_next
    return found


def check(failing: Tracer, side: Callable[[], Any], error: BaseException, source: Source | None) -> None:
    """Record that a side of a branch raises where its test says so."""
    policy = open_policy()
    assert policy is not None
    if policy.tries:
        catching = next((attempt for attempt in reversed(policy.attempts) if attempt.catches(error)), None)
        why = "compiled code raises, but does not catch" if catching is None else catching.why
        refusal = TracerBoolError(at(source, f"it depends on traced values whether {type(error).__name__} is raised, inside of a `try` "
                                     f"that may catch it: {why}\n"
                                     "  hint: write the test as `if`, with what `except` does in its branch"))
        if len(policy.tries) > len(policy.attempts):
            raise Recapture(("", 0, len(policy.tries)), refusal)       # which no `except` of the user's catches
        if catching is not None and not catching.records(refusal):
            return

    def fails() -> Any:
        return call(lambda: _failing(side, failing, error))
    region = open_region()
    outside, region.record.source = region.record.source, source
    try:
        token = cond(failing, fails, lambda: np.float64(0.0))
    finally:
        region.record.source = outside
    note(token)
    policy.needed = True


def raise_where(failing: Any, error: Exception) -> None:
    """Record that the program raises this where `failing` says so."""
    def fail() -> NoReturn:
        raise error
    region = open_region()
    check(failing, fail, error, region.record.source or current_source(region.outer))


HANDLERS["raise_where"] = raise_where


def interrupt_where(failing: Any, interrupt: Callable[[Any], Any]) -> Tracer:
    """Record that the program calls this where `failing` says so, which no handler of the user's can know of; a number that is there
    when that is done."""
    region = open_region()
    outside = region.record.source
    region.record.source = outside or current_source(region.outer)
    try:
        flag = fresh(as_truth(value_of(failing)))
        token: Tracer = cond(flag, lambda: call(lambda: host_call(interrupt, Struct(tensor(F64)), [flag])), lambda: np.float64(0.0))
    finally:
        region.record.source = outside
    note(token)
    return token


HANDLERS["interrupt_where"] = interrupt_where


def check_once(x: Any, failing: Callable[[], Any], error: Exception) -> None:
    """Record that the program raises this where `failing` says so; not again where that was done for x and holds here as well."""
    if not _was_checked(x):
        raise_where(failing(), error)


def _was_checked(x: Any) -> bool:
    """Whether x was checked before, in this region or one around it; else it is noted as checked here."""
    policy, region, here = open_policy(), open_region(), open_region()
    assert policy is not None
    if policy.tries:                               # what is recorded there may be recorded again
        return False
    found = policy.sure.get(id(x))
    while found is not None and found[0] is x and region is not None:
        if region is found[1]:
            return True
        region = region.parent  # type: ignore[assignment]
    policy.sure[id(x)] = (x, here)
    return False


def note(token: Tracer) -> None:
    """What the region computes is computed once this is there."""
    open_region().checks.append(value_of(token))


def together() -> list[Tracer]:
    """One number that is there when all checks of the region, an inner one, are done; none where it has no checks."""
    region = open_region()
    checks, region.checks = region.checks, []
    policy = open_policy()
    if policy is not None and policy.attempts:     # what fails, also where nothing reads it
        checks = [*checks, *failing([value for value in region.record.values if value.op is not ops.cond])]
    return [call(lambda: fresh(ops.barrier(ops.full(value=0.0, shape=(), dtype=F64), *checks)))] if checks else []


def _failing(side: Callable[[], Any], failing: Tracer, expected: BaseException) -> Any:
    """Run a side that raises, and call back to do it."""
    policy = open_policy()
    assert policy is not None
    outer, policy.formatted = policy.formatted, []
    policy.depth += 1
    policy.scopes.append(scope := Scope(is_branch=True))
    try:
        side()
    except Exception as error:
        if _refusal(error) is not None and type(error) is not type(expected):
            raise                                  # not what the program would raise
        found = with_users_line(error, error.__traceback__) if isinstance(error, BwError) else as_local(error)
        found.__traceback__ = found.__context__ = None             # the program keeps it: not the frames, and what is in them
        values = policy.formatted
        held = {name: len(values) + k for k, name in enumerate(name for name, x in vars(found).items() if isinstance(x, Tracer))}
        values += [(vars(found)[name], "") for name in held]
    finally:
        policy.formatted = outer
        policy.depth -= 1
        policy.scopes.pop()
        scope.undo()
    specifications = [specification for _, specification in values]
    texts = [_OURS.sub("'float'", text) if isinstance(text, str) else text for text in found.args]

    def fail(flag: Any, *numbers: Any) -> Any:
        if flag:                                   # mapped over a batch, both sides are computed
            made = _with_values(found, texts, numbers, specifications)
            made.__dict__.update((name, numbers[place] if np.ndim(numbers[place]) else numbers[place][()]) for name, place in held.items())
            raise made
        return np.float64(0.0)
    fail.__name__ = type(found).__name__
    as_caught = _with_values(found, texts, [np.array("...")] * len(values), [""] * len(values))       # by handlers in the program
    operands = [fresh(ops.stop_gradient(value_of(value))) if value._type.dtype.kind in "fc" else value for value, _ in values]
    return host_call(fail, Struct(tensor(F64)), [fresh(as_truth(value_of(failing))), *operands], raises=as_caught)


def _with_values(error: BaseException, texts: list[Any], numbers: Any, specifications: list[str]) -> BaseException:
    """The exception, with numbers in the places of traced values in its texts."""
    def shown(match: re.Match[str]) -> str:
        number = numbers[int(match[1])]
        return format(number if np.ndim(number) else number[()], specifications[int(match[1])])
    made = type(error).__new__(type(error))        # not its constructor, which may take other arguments than these texts
    made.__dict__.update(error.__dict__)
    made.args = tuple([_PLACE.sub(shown, text) if isinstance(text, str) else text for text in texts])
    made.__cause__, made.__traceback__ = error.__cause__, None
    return made


class Trying:
    """Around the body of a `try` that has handlers: these are for errors of the user's program, not for what tracing refuses.

    errors: the names of what they catch.  divides: they are for what Python raises for a division by zero, which compiled code does
    not: it gives what NumPy gives.  raised: what NumPy raises in it, as the program sets (`np.errstate`), which compiled code does not
    either.
    """

    def __init__(self, errors: Sequence[str]) -> None:
        self.errors = errors
        self.divides = not _DIVISION_ERRORS.isdisjoint(errors)
        self.raised: set[type[Exception]] = set()
        self.before: tuple[Region, int] | None = None

    def __enter__(self) -> None:
        policy = open_policy()
        if policy is not None:
            policy.tries.append(self)
            policy.guarded.update([scope.loop.site for scope in policy.scopes if scope.loop is not None])
            self.before = (open_region(), len(open_region().record.values))

    def __exit__(self, _kind: Any, error: BaseException | None, _traceback: Any) -> None:
        policy = open_policy()
        if policy is None:
            return
        policy.tries.pop()
        if error is None and self.before is not None and self.before[0] is open_region():
            if self.divides:
                self._refuse_divisions(policy, self.before[1])
            self._refuse_complaints(policy, self.before[1])
        if isinstance(error, Exception) and any(scope.loop is not None for scope in policy.scopes):
            raise NotCapturable(f"{type(error).__name__} is raised and caught in it, perhaps not by all iterations", error_source(error))
        refused = _refusal(error) if isinstance(error, Exception) and not is_raised(error) else None
        if refused is None:
            local = None if error is None else as_local(error)
            if local is not None and local is not error:
                raise local from None
            return
        refused = with_users_line(refused, error.__traceback__)  # type: ignore[union-attr]
        policy.needed = True                       # as it is written it would be caught
        if policy.depth:
            raise NotCapturable(str(refused), getattr(refused, "source", None)) from None
        raise Recapture(("", 0, len(policy.tries)), refused) from None

    def _refuse_divisions(self, policy: Policy, before: int) -> None:
        """Refuse what Python may raise for in its body, of the values that are recorded behind some."""
        for found in _divisions(open_region().record.values[before:]):
            if found in policy.divisions:
                continue
            refusal = TracerError(at(found.source, "a number is divided by a traced one, inside of a `try` that catches "
                                     "ZeroDivisionError: compiled code gives what NumPy gives, and raises nothing\n"
                                     "  hint: test the divisor with `if`, with what `except` does in its branch; numbers of NumPy's "
                                     "(np.sin(x), np.float64(x)) raise nothing anyhow"))
            policy.needed = True                   # as it is written it would go on
            raise Recapture(("", 0, len(policy.tries) + 1), refusal)

    def _refuse_complaints(self, policy: Policy, before: int) -> None:
        """Refuse what NumPy may raise for in its body, where a handler is for that."""
        named = [name for name in self.errors if name not in ("Exception", "BaseException")]
        name = caught(self.raised | numpy_errors(), self.errors) or caught(numpy_warnings(), named)
        found = None if name is None else next(complaining(open_region().record.values[before:]), None)
        if found is not None:
            policy.needed = True
            refusal = TracerError(at(found.source, f"what NumPy complains of here is raised (np.errstate, warnings), in a `try` that "
                                     f"catches {name}: compiled code gives what NumPy gives otherwise, and raises nothing\n"
                                     "  hint: test the operands with `if` or np.where(y == 0, ...), or the result with np.isfinite"))
            raise Recapture(("", 0, len(policy.tries) + 1), refusal)

    def catches(self, error: BaseException) -> bool:
        """Whether a handler is for an exception of Python's."""
        return any(one.__name__ in self.errors for one in type(error).__mro__)


class Suppressing(contextlib.suppress):
    """In the place of `contextlib.suppress`, which is a `try` whose handlers do nothing."""

    def __init__(self, *exceptions: type[BaseException]) -> None:
        super().__init__(*exceptions)
        self.trying = Trying([one.__name__ for one in exceptions])

    def __enter__(self) -> None:
        self.trying.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool:
        self.trying.__exit__(kind, error, traceback)
        return bool(not isinstance(error, passing()) and super().__exit__(kind, error, traceback))


def _divisions(values: Sequence[Value]) -> Iterator[Value]:
    """Divisions of numbers by what may be zero, those in loops and branches too."""
    for value in values:
        if value.op in _DIVIDING and value.type.shape == () and not _is_never_zero(value.operands[1]):
            yield value
        for region in value.op.regions:
            yield from _divisions(value.attrs[region].body)


def _is_never_zero(divisor: Value) -> bool:
    while divisor.op is ops.cast:
        divisor = divisor.operands[0]
    return divisor.op is ops.full and divisor.attrs["value"] != 0


def _refusal(error: Exception) -> BwError | None:
    """What tracing refuses, where that is why the user's code sees an exception; not what NumPy would raise, too."""
    found = error if isinstance(error, BwError) else hidden_refusal(open_region(), error) or (
        foreign_refusal(error) if isinstance(error, TypeError) else None)
    return found if isinstance(found, TracerError | UnsupportedError) else None


def require_no_handler(divisor: IndexTracer) -> None:
    """The index of a loop is a divisor, for which Python raises where it is 0."""
    policy, extent = open_policy(), divisor._extent
    if policy is not None and policy.tries and lower(extent) <= 0 <= upper(extent):
        raise NotCapturable("it divides by its index in a `try`, whose `except` is for that")


def passing() -> tuple[type[BaseException], ...]:
    """What no handler of the user's is for."""
    return StaticDemand, Recapture, NotCapturable, Divided, Again


# ----- messages
_LEVELS = frozenset(("critical", "debug", "error", "exception", "fatal", "info", "log", "warn", "warning"))


def is_message(function: Any) -> bool:
    """Whether a function only tells something: print, warnings.warn, methods of loggers and of the standard streams."""
    if function is print or function is warnings.warn:
        return True
    owner = getattr(function, "__self__", None)
    if owner is not None and (owner is sys.stdout or owner is sys.stderr):
        return True
    return getattr(function, "__module__", "") == "logging" and function.__name__ in _LEVELS


_CONVERSION = re.compile(r"%(%|(?:\(\w*\))?[-+ #0-9.]*[diouxXeEfFgGc])")


def message(function: Any) -> Callable[..., Any] | None:
    """In the place of a logger's method: it puts its arguments into the text itself, where `%.3f` would ask traced values for numbers."""
    if getattr(function, "__module__", "") != "logging" or not is_message(function):
        return None

    def tell(*args: Any, **options: Any) -> Any:
        options["stacklevel"] = options.get("stacklevel", 1) + levels_to_the_user() - 1
        if any(isinstance(one, Tracer) for arg in args for one in (arg.values() if isinstance(arg, dict) else (arg,))):
            args = tuple([_CONVERSION.sub(_shown, arg) if isinstance(arg, str) else arg for arg in args])
        return function(*args, **options)
    return tell


def _shown(found: re.Match[str]) -> str:
    """A conversion of a format that takes whatever there is to show."""
    key = found[1].rpartition(")")
    return found[0] if found[1] == "%" else f"%{key[0]}{key[1]}s"


def left_out(function: Any, policy: Policy) -> Callable[..., None]:
    """In the place of a message in the body of a captured loop or branch."""
    name = getattr(function, "__name__", "a message")

    def tell_nothing(*_args: Any, **_options: Any) -> None:
        source = current_source(open_region().outer)
        key = None if source is None else (source.file, source.line)
        if key not in policy.told:
            policy.told.add(key)
            warnings.warn(at(source, f"{name}() is left out: compiled loops and branches tell nothing\n"
                             "  hint: return the values, or trace with autoloop=False, which unrolls loops"),
                          LeftOutWarning, stacklevel=levels_to_the_user())
    return tell_nothing
