"""`jit`: compiled functions.  A call goes straight to native code; the first call with a new signature traces and compiles.

Every transform returns a `JitFunction`.  It holds *specialisations*, one per kind of arguments (`specialisation.py`); the *forms* in which
these have been called (positional, by keyword ...) are tried by the native entry, one after another.  Calls that match no form go to
`JitFunction._slow`.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, overload

import numpy as np

from bwcompiler.api.programs.arguments.assignments import check_mutates
from bwcompiler.api.programs.arguments.shared_arguments import SharedArguments
from bwcompiler.api.programs.arguments.specialisation_keys import difference, specialisation_key
from bwcompiler.api.programs.kept import kept
from bwcompiler.api.programs.program import Program, require_stage
from bwcompiler.api.programs.specialisation import Specialisation
from bwcompiler.api.programs.variants import Retrace, Variants
from bwcompiler.compiler.options import may_assume
from bwcompiler.errors import RecompileWarning, TracerError, at
from bwcompiler.frontend.tracing.assumed import AssumedOtherwise
from bwcompiler.frontend.tracing.boundary.arguments import (
    Arguments,
    check_statics,
    require_arguments,
    require_function,
    take_apart,
)
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead
from bwcompiler.frontend.tracing.provenance.source import levels_to_the_user
from bwcompiler.frontend.tracing.refusals.tracebacks import cut_to_user_frames, shows_users_frames
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.trace import TraceOptions, call_user
from bwcompiler.locks import RenewedLock
from bwcompiler.runtime.executable import CallForm, CompiledFunction, chain
from bwcompiler.spellings import missing_attribute, says_instead

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")

FORMS = 64                     # most call forms that the native entry of one function tries
WARN_AT = (16, 64, 256, 1024)  # numbers of traces of one function at which it warns
MOST_SHOWN = 3                 # of the numbers that one line needs, where these are data


def _assumed(traced: TraceResult) -> list[str]:
    """The numbers that a program is compiled for, by the lines that need them."""
    numbers: dict[str, list[str]] = {}
    for found in traced.assumed:
        numbers.setdefault("" if found.source is None else f" ({found.source.short})", []).append(str(found.number))
    more = [f" and {len(one) - MOST_SHOWN} more" if len(one) > MOST_SHOWN else "" for one in numbers.values()]
    return [f"it is compiled for {', '.join(one[:MOST_SHOWN])}{rest}, which data decide{place}; another number compiles again"
            for rest, (place, one) in zip(more, numbers.items(), strict=True)]


class JitFunction(CompiledFunction[P, R]):
    """What `jit` returns: call it like the function.  Each new kind of arguments (shapes, dtypes, tree, static values) compiles once."""

    def __init__(self, fun: Callable[P, R], static_argnums: int | Iterable[int] = (), static_argnames: str | Iterable[str] = (),
                 mutates: bool | Any = True, autoloop: bool = True) -> None:
        self.fun = fun
        self.autoloop = autoloop
        self.static_argnums = static_argnums
        self.static_argnames = static_argnames
        self.mutates = mutates
        self._variants: Variants[Specialisation] = Variants()
        self._traces = 0
        self.windows = True
        self._forms: list[CallForm] = []
        self._shared: SharedArguments | None = None
        self._lock = RenewedLock()
        functools.update_wrapper(self, fun, updated=())
        self._install(self._slow)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self: JitFunction[Concatenate[Any, Q], R], instance: object, owner: type | None = None) -> Callable[Q, R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method: Callable[..., Any] = self
        return self if instance is None else functools.partial(method, instance)

    def _slow(self, *args: Any, **kwargs: Any) -> Any:
        """A call that matches no native form."""
        if active_region() is not None:
            return call_user(self.fun, args, kwargs, self.autoloop)
        try:
            arguments = self._arguments(args, kwargs)
            specialisation = self.specialised(arguments)
            if specialisation.assumed:
                return self._assuming(specialisation, arguments)
            try:
                return specialisation.call(arguments, args, kwargs)
            except IndexError:
                if not specialisation.may_be_cut:
                    raise
            self.cut_slices()
            return self._slow(*args, **kwargs)
        except Exception as error:
            cut_to_user_frames(error)
            raise

    def _assuming(self, first: Specialisation, arguments: Arguments) -> Any:
        """The result of the program whose assumed numbers (`tracing/assumed`) are those of these arguments, compiled if there is none.

        A program for other numbers may also fail in another way, before it comes to the check.
        """
        failed: dict[tuple[Any, ...], BaseException] = {}
        for one in (first, *self._variants.others(first, arguments)):
            try:
                found = one.run(arguments)
            except (Exception, AssumedOtherwise) as error:
                failed[one.assumed] = error
            else:
                with self._lock:
                    self._variants.prefer(one, arguments)
                return found
        with self._lock:
            made = self._compile(arguments)
        if made.assumed not in failed:
            try:
                return made.run(arguments)
            except AssumedOtherwise as error:
                failed[made.assumed] = error
        self._variants.drop(lambda one: one is made)
        if isinstance(failed[made.assumed], AssumedOtherwise):
            raise TracerError(f"{self.__name__}: numbers that data decide, and that the function is compiled for, are not those that the "
                              "program computes: it computes with other roundings than NumPy") from None
        raise failed[made.assumed]                 # which it really does for these arguments

    def cut_slices(self) -> None:
        """Compile from now on with NumPy's rule for slices with data-dependent starts: they may be shorter at the end of the axis.  This
        code is slower, so specialisations first assume that such slices fit, and raise IndexError if one does not.  Likewise eigenvalues
        of real matrices, and what `np.real_if_close` gives, are taken for real at first, and are complex from now on.

        Call forms stay: this may be called from inside one of them, and they are still correct for calls whose slices fit.
        """
        with self._lock:
            self.windows = False
            self._variants.drop(lambda one: one.may_be_cut)

    def _arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        arguments = take_apart(self.fun, args, kwargs, self.static_argnums, self.static_argnames)
        self._variants.make_static(arguments)
        return arguments

    def specialised(self, arguments: Arguments) -> Specialisation:
        """The specialisation for these arguments, compiled if there is none."""
        found = self._variants.find(arguments)
        if found is None:
            with self._lock:
                found = self._variants.find(arguments) or self._compile(arguments)
        return found

    def call_overlapping(self, traced: TraceResult, arguments: Arguments, groups: Sequence[Sequence[int]]) -> Any:
        """The result for groups of arguments that share memory, if the function assigns to a member of a group."""
        if self._shared is None:
            self._shared = SharedArguments(self.fun, self.mutates, self.autoloop, lambda fun, back: JitFunction(fun, mutates=back))
        return self._shared(traced, arguments, arguments.dynamic_leaves, groups)

    def _compile(self, arguments: Arguments) -> Specialisation:
        def make(retrace: Retrace) -> Specialisation:
            self._traces += 1
            if self._traces in WARN_AT:
                self._warn(arguments, retrace.changed)
            return Specialisation(self, arguments, retrace)

        made, dropped = self._variants.add(arguments, make)
        for old in dropped:
            self._forms = [form for form in self._forms if form not in old.forms.values()]
        return made

    def _warn(self, arguments: Arguments, changed: Sequence[OutsideRead]) -> None:
        """Warn that the function is traced again and again, with the reason for this trace."""
        if changed:
            why = f"{changed[0].path} {'was written to' if changed[0].read.kind == 'bytes' else 'was rebound'}"
            hint = f"pass {changed[0].path} as an argument"
            source: Any = changed[0].source
        else:
            why, hint = difference(specialisation_key(arguments), next(reversed(self._variants.kinds), None), arguments.names())
            source = None
            before = self._variants.kinds.get(specialisation_key(arguments))
            if before and before[0].assumed:
                why, source = "what it was compiled for is data, and other numbers now", before[0].assumed[0].source
                hint = "arrays of fixed size, with np.where(mask, x, 0); explain() shows all such numbers"
        warnings.warn(at(source, f"{self.__name__} has been traced and compiled {self._traces} times; this time because {why}\n"
                         f"  hint: {hint}"), RecompileWarning, stacklevel=levels_to_the_user())

    def add_form(self, form: CallForm) -> None:
        with self._lock:
            self._forms = [form, *self._forms][:FORMS]
            self._install(chain(self._forms, self._slow, self.__name__))

    # ----- inspection
    @shows_users_frames
    def lower(self, *args: Any, **kwargs: Any) -> Program:
        """This function as a `Program` for arguments like these, all of them positional; compiled when it is first called.

        >>> import numpy as np, bwcompiler as bw
        >>> bw.jit(np.sin).lower(np.ones(3))
        <compiled sin(x: f64[3])>
        """
        return Program(self.fun, self._positional("lower(", args, kwargs), tracing=TraceOptions(autoloop=self.autoloop, floats=True))

    @shows_users_frames
    def explain(self, *args: Any, **kwargs: Any) -> str:
        """`Program.explain` for arguments like these, and what is read from outside at every call.

        >>> import numpy as np, bwcompiler as bw
        >>> print(bw.jit(lambda x, mode: x if mode == "same" else -x).explain(0.5, "same").splitlines()[0])
        mode = 'same' is compiled in
        """
        program = self._shown(self._positional("explain(", args, kwargs))
        text = program.explain()                   # compiles, which may trace again with all loops unrolled
        return "\n".join([*self._notes(program.traced), text])

    @shows_users_frames
    def as_text(self, stage: str, *args: Any, **kwargs: Any) -> str:
        """The program for arguments like these at one stage: see `Program.as_text`.

        >>> import numpy as np, bwcompiler as bw
        >>> bw.grad(np.sin).as_text("forward", 0.5).splitlines()[0]
        'graph sin(%x: f64[]) -> f64[] {'
        """
        require_stage(stage)
        return self._shown(self._positional(f"as_text({stage!r}, ", args, kwargs)).as_text(stage)

    @shows_users_frames
    def dump(self, path: str | Path, *args: Any, **kwargs: Any) -> list[Path]:
        """The program for arguments like these as a file or folder: see `Program.dump`.

        >>> import numpy as np, bwcompiler as bw, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in bw.jit(np.sin).dump(f"{folder}/sine.svg", 0.5)]
        ['sine.svg']
        """
        return self._shown(self._positional(f"dump({str(path)!r}, ", args, kwargs)).dump(path)

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute(self, name)

    def _positional(self, call: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        """The arguments by position, with defaults filled in between; SignatureError if that fails (`call` is shown in its hint)."""
        if not kwargs:
            require_arguments(self.fun, args, call.partition("(")[0], f"{self.__name__}.{call}")
        arguments = self._arguments(args, kwargs)
        if not arguments.kwargs:
            return arguments
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        return self._arguments(bound.args, bound.kwargs)

    def _shown(self, arguments: Arguments) -> Program:
        return Program(self.fun, arguments, tracing=TraceOptions(autoloop=self.autoloop, windows=self.windows, floats=True,
                                                                 assumes=may_assume()))

    def _notes(self, traced: TraceResult) -> list[str]:
        return [*_assumed(traced), *self._read_outside(traced)]

    def _read_outside(self, traced: TraceResult) -> list[str]:
        return [f"{outside.path} is {'compared' if outside.read.kind == 'bytes' else 'read'} at every call; another value compiles "
                f"again{'' if outside.source is None else f' ({outside.source.short})'}"
                for outside in traced.outside.fixed
                if not callable(outside.read.expected) and not outside.read.is_of_function
                and not isinstance(outside.read.expected, types.ModuleType)]

    def __repr__(self) -> str:
        kinds = len(self._variants)
        return f"<{type(self).__name__} {self.__name__}, compiled for {kinds} kind{'' if kinds == 1 else 's'} of arguments>"

    def __dir__(self) -> list[str]:
        return ["as_text", "clear_cache", "dump", "explain", "lower"]

    # ----- pickling and copying
    def __reduce__(self) -> Any:
        """Pickled by name if a decorator has bound it to the name of the function; otherwise by the function and the options."""
        found: Any = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return self.__qualname__ if found is self else (_remade, self._remake())

    def _remake(self) -> tuple[Any, ...]:
        options = {"static_argnums": self.static_argnums, "static_argnames": self.static_argnames, "mutates": self.mutates,
                   "autoloop": self.autoloop}
        return jit, (self.fun,), options

    def clear_cache(self) -> None:
        """Forget all compilations of this function (files on disk stay: `bwc cache clear`).

        >>> import numpy as np, bwcompiler as bw
        >>> bw.jit(np.sin).clear_cache()
        """
        with self._lock:
            self._variants.clear()
            self._shared = None
            self._forms = []
            self._install(self._slow)

    __name__: str = "compiled"
    __qualname__: str


def _remade(transform: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return transform(*args, **options)


@overload                     # a ufunc also takes arrays, which its first overload does not state
def jit(fun: np.ufunc, *, static_argnums: int | Iterable[int] = (), static_argnames: str | Iterable[str] = (),
        mutates: bool | int | str | Iterable[int | str] = True, autoloop: bool = True) -> JitFunction[..., Any]: ...


@overload
def jit(fun: Callable[P, R], *, static_argnums: int | Iterable[int] = (), static_argnames: str | Iterable[str] = (),
        mutates: bool | int | str | Iterable[int | str] = True, autoloop: bool = True) -> JitFunction[P, R]: ...


@overload                     # as a decorator with options
def jit(fun: None = None, *, static_argnums: int | Iterable[int] = (), static_argnames: str | Iterable[str] = (),
        mutates: bool | int | str | Iterable[int | str] = True, autoloop: bool = True) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


@kept
@says_instead
def jit(fun: Callable[..., Any] | None = None, *, static_argnums: int | Iterable[int] = (), static_argnames: str | Iterable[str] = (),
        mutates: bool | int | str | Iterable[int | str] = True, autoloop: bool = True) -> Any:
    """Compile fun: the first call with a new kind of arguments traces and compiles it, later calls run native code.

    fun             a function of arrays, numbers and containers of them, written with plain NumPy.
    static_argnums  positions (and static_argnames: names) of hashable arguments that are compiled in.  Strings, functions and objects
                    always are, and so are integers whose value fun needs while it is traced (`range(n)`, an axis, a shape).
    mutates         True: arguments that fun assigns to are changed in the caller's arrays; False: they are not; positions or
                    names select arguments.
    autoloop        loops of fun and of the functions that it calls are captured from their source: the body of a loop of eight or
                    more iterations is compiled once (`explain` names exceptions and reasons).  False only traces fun.

    Results are NumPy arrays and scalars of the shapes and dtypes that NumPy gives.  Raises TracerError (or a subclass) where fun
    needs the numbers of an argument while it is traced, UnsupportedError for NumPy functions and keywords that are not supported,
    ShapeError and DTypeError as NumPy would, SignatureError for static arguments that cannot be hashed, and ValueError where fun
    assigns to a read-only array.

    >>> import numpy as np, bwcompiler as bw
    >>> f = bw.jit(lambda x: np.sum(np.sin(x) ** 2))
    >>> float(f(np.zeros(3)))
    0.0
    """
    if fun is None:
        return functools.partial(jit, static_argnums=static_argnums, static_argnames=static_argnames, mutates=mutates,
                                 autoloop=autoloop)
    require_function(fun, "jit")
    check_statics("jit", fun, static_argnums, static_argnames)
    check_mutates("jit", fun, mutates)
    if isinstance(fun, JitFunction) and (static_argnums, static_argnames, mutates, autoloop) == ((), (), True, True):
        return fun
    return JitFunction(fun, static_argnums, static_argnames, mutates, autoloop)
