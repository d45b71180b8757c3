"""Variables that hold different kinds of objects, depending on data: None or a number, "heat" or "cool", one object or another.

A `Choice` consists of several known objects, a traced number that says which of these it is, and possibly a value: numbers and arrays
of one structure.  Tests of which object it is (`is`, `==`, `in`, truth) give traced values.  All other uses apply to the value; if
there is none, they raise TypeError when the program runs, as Python does.  Attributes and items are chosen in the same way: `mode.power`,
`table[mode]`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import TracerError, UnsupportedError, at
from bwcompiler.frontend.source.concrete.contents import binary
from bwcompiler.frontend.source.effects.places import is_plain_object
from bwcompiler.frontend.source.library.builtin_functions import choose_number
from bwcompiler.frontend.source.undecided.kinds.identities import are_told_apart
from bwcompiler.frontend.source.variables import UNBOUND, is_number, not_capturable, open_policy, same
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.op import Value
from bwcompiler.operators import COMPARISONS, Operation, Operators
from bwcompiler.ops.rules import zero_of

VALUE = -1                     # which: the value
ABSENT = -2                    # the place of what is not among the options
_KNOWN = (str, bytes, enum.Enum, type(None), types.FunctionType, types.BuiltinFunctionType, np.ufunc, type(np.sum), type(UNBOUND))


class Options:
    """Known things, each once; in structures of trees."""

    __slots__ = ("things",)

    def __init__(self, things: Sequence[Any]) -> None:
        once: list[Any] = []
        for thing in things:
            if not any(same(thing, one) for one in once):
                once.append(thing)
        self.things = tuple(once)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and len(self.things) == len(other.things) and all(map(same, self.things, other.things))

    def __hash__(self) -> int:
        return len(self.things)

    def place(self, thing: Any) -> int:
        """Where a thing is among them; ABSENT where it is not."""
        return next((place for place, one in enumerate(self.things) if same(one, thing)), ABSENT)

    def __str__(self) -> str:
        return ", ".join(map(_named, self.things))


def _is_object(x: Any) -> bool:
    """Whether it is an object of a class of the user's, which is no value."""
    return is_plain_object(x) and not isinstance(x, enum.Enum)


def _named(x: Any) -> str:
    """What a thing is called: an object that is written as where it lies by its class."""
    return f"an object of {type(x).__name__}" if _is_object(x) and repr(x) == object.__repr__(x) else repr(x)


@dataclasses.dataclass(eq=False, slots=True)
class Choice(Operators):
    """which: VALUE, or the place of one of the options.  value: a tree of numbers and arrays, None where it is never one."""

    which: Any
    value: Any
    options: Options = dataclasses.field(metadata={"static": True})
    has_value: bool = dataclasses.field(metadata={"static": True})

    __array_ufunc__ = None

    def __hash__(self) -> int:
        return refuse(self)

    def __eq__(self, other: Any) -> Any:
        return equals(self, other)

    def __ne__(self, other: Any) -> Any:
        return _not(equals(self, other))

    def __bool__(self) -> bool:
        return bool(truth(self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return attribute(self, name)

    def __getitem__(self, index: Any) -> Any:
        item_of = HANDLERS["item_of"]
        return item_of(decided(self), index) if self.has_value else _of_each(self, lambda thing: item_of(thing, index))

    def __iter__(self) -> Any:
        return iter(decided(self))

    def __len__(self) -> int:
        return HANDLERS["known_length"](decided(self))  # type: ignore[no-any-return]

    def __index__(self) -> int:
        return operator.index(decided(self))

    def __float__(self) -> float:
        return float(decided(self))

    def __format__(self, specification: str) -> str:
        """In a text; where the loop around can be unrolled, that knows which string it is."""
        policy = open_policy()
        loop = next((scope.loop for scope in reversed(policy.scopes) if scope.loop is not None), None) if policy is not None else None
        if loop is not None and loop.index is not None and all(isinstance(thing, str) for thing in self.options.things):
            not_capturable(f"it makes a text of one of {self.options}")
        return repr(self)

    def __str__(self) -> str:
        return format(self)

    def __repr__(self) -> str:
        return f"<traced {f'value or {self.options}' if self.has_value else f'choice of {self.options}'}>"

    def _operate(self, operation: Operation, *operands: Any) -> Any:
        if operation in COMPARISONS and not self.has_value:
            return _of_each(self, lambda thing: operation(thing, operands[1]))
        return operation(*map(decided, operands))


@functools.cache
def _register() -> None:
    tree.register_dataclass(Choice)


def _made(which: Any, value: Any, options: Options, has_value: bool) -> Choice:
    _register()
    policy = open_policy()
    assert policy is not None
    policy.choices = True
    return Choice(which, value, options, has_value)


# ----- what it is
def is_known(x: Any) -> bool:
    """Whether something can be one of the options: compared by identity, or as a string is."""
    if isinstance(x, _KNOWN):
        return True
    if type(x) is types.MethodType:
        return type(x.__func__) is types.FunctionType and is_known(x.__self__)
    if not is_plain_object(x) or isinstance(x, Tracer | np.ndarray | np.generic | Choice) or is_library_module(type(x)):
        return False
    return not dataclasses.is_dataclass(x) or are_told_apart(type(x), open_policy())


def are_things(*objects: Any) -> bool:
    """Whether one of these is a known thing, or one of several."""
    return any(type(one) is Choice or is_known(one) for one in objects)


HANDLERS["are_things"] = are_things


def is_library_module(kind: type) -> bool:
    """Whether a class is this package's or NumPy's."""
    return str(kind.__module__).partition(".")[0] in ("bwcompiler", "numpy", "scipy")


def decided(x: Any) -> Any:
    """The value of a choice; anything else as it is."""
    if type(x) is not Choice:
        return x
    if is_unsure(x):
        return decided(HANDLERS["sure"](x))
    if x.has_value:
        HANDLERS["require_value"](x)
        return whole(x)
    return _of_each(x, int) if all(isinstance(thing, int) for thing in x.options.things) else refuse(x)


def whole(x: Choice) -> Any:
    """The value of a choice, assembled of its parts."""
    return HANDLERS["unboxed"](x.value)


def _list_of_choice(x: Any) -> Any:
    """x; the list that it is, if it is None or one."""
    is_list = type(x) is Choice and x.has_value and getattr(getattr(x.value, "form", None), "kind", None) is list
    return decided(x) if is_list else x


HANDLERS["list_of_choice"] = _list_of_choice


def is_unsure(x: Choice) -> bool:
    """Whether it stands for a variable that may have no value (`unbound.py`)."""
    return any(thing is UNBOUND for thing in x.options.things)


def refuse(x: Choice, objects: Sequence[Any] = ()) -> NoReturn:
    """A choice of known things is asked for more than which it is: for one of these objects, say."""
    hint = ("arrays in the place of such objects, one for each attribute, and a row for each object: child = np.full((n, 4), -1), with -1 "
            "for None" if any(map(_is_object, x.options.things)) else "if ... elif ... by it, or a dictionary of numbers by it")
    refusal = TracerError(at(current_source(), f"it depends on traced values which of {x.options} this is: it can be compared, be tested "
                             f"in an `if` and asked for attributes\n  hint: {hint}"))
    policy = open_policy()
    if policy is not None:
        HANDLERS["tell_apart"](objects, policy, refusal)
    raise refusal


def unwrapped(x: Any) -> Any:
    """An argument of a function of NumPy's: values in the places of choices."""
    if type(x) is Choice:
        return decided(x)
    if type(x) in (list, tuple) and any(type(part) in (Choice, list, tuple) for part in x):
        return type(x)([unwrapped(part) for part in x])
    return x


HANDLERS["unwrapped"] = unwrapped


def valued(x: Any) -> Any:
    """An argument of a function that compares: values in the places of choices that have them."""
    if type(x) is Choice:
        return decided(x) if x.has_value else x
    return type(x)(map(valued, x)) if type(x) in (list, tuple) else x


def _not(x: Any) -> Any:
    return np.logical_not(x) if isinstance(x, Tracer) else not x


def _where(choice: Choice, numbers: Sequence[Any], value: Any) -> Any:
    """The number of the option that it is, or that of the value."""
    found = value
    for place, number in enumerate(numbers):
        if found is None:
            found = number
        elif not same(found, number):
            found = call(choose_number, choice.which == place, number, found)
    return found


def is_same(x: Any, other: Any) -> Any:
    """`x is other`, for a choice on one side."""
    if type(x) is not Choice:
        x, other = other, x
    if x is other:
        return True
    if is_unsure(x):
        return is_same(HANDLERS["sure"](x), other)
    if type(other) is Choice:
        refuse(other)
    if isinstance(other, bool | np.bool_) and x.has_value:
        return HANDLERS["asked_for_value"](x, _where(x, [False] * len(x.options.things), HANDLERS["is"](whole(x), other)), 0)
    place = x.options.place(other)
    return False if place == ABSENT else HANDLERS["asked_for_value"](x, _only(x, place))


def _only(x: Choice, place: int) -> Any:
    return True if len(x.options.things) == 1 and not x.has_value else x.which == place


def equals(x: Choice, other: Any) -> Any:
    """`x == other`."""
    if x is other:
        return True
    if is_unsure(x):
        return binary("eq", HANDLERS["sure"](x), other)
    if type(other) is Choice:
        return _equal_choices(x, other)
    return _where(x, [HANDLERS["truth_of"](thing == other) for thing in x.options.things],
                  whole(x) == other if x.has_value and not is_known(other) else False if x.has_value else None)


def _equal_choices(x: Choice, other: Choice) -> Any:
    """`x == other` of strings, which are equal where they are the same of all that they may be."""
    things = (*x.options.things, *other.options.things)
    if x.has_value or other.has_value or not all(isinstance(thing, str | bytes) for thing in things):
        refuse(other)
    options = covering(x, other)
    assert options is not None
    return number_in(x, options) == number_in(other, options)


def picked(strings: Any, index: Any) -> Any:
    """strings[index] at a traced place, of a string or of a list or tuple of strings; None where it is something else."""
    if not strings or not all(type(one) is str for one in strings):
        return None
    options = Options(list(dict.fromkeys(strings)))
    numbers = np.array([options.place(one) for one in strings])
    return _made(call(as_tracer, numbers)[index], None, options, False)


def chosen_of(options: Options, which: Any) -> Choice:
    """The option of a traced number."""
    return _made(which, None, options, False)


def contains(text: str, x: Choice) -> Any:
    """`x in text`, of strings."""
    return _where(x, [thing in text for thing in x.options.things], None)


def truth(x: Choice) -> Any:
    """Whether it is true, as a test sees it."""
    if is_unsure(x):
        return HANDLERS["truth_of"](HANDLERS["sure"](x))
    value = HANDLERS["truth_of"](whole(x)) if x.has_value else None
    found = _where(x, [bool(thing) for thing in x.options.things], value if value is None or isinstance(value, Tracer) else bool(value))
    return HANDLERS["asked_for_value"](x, found, 0)


def attribute(x: Choice, name: str) -> Any:
    """x.name: of the value, or what the known things have."""
    if x.has_value:
        return getattr(decided(x), name)
    first, *others = [getattr(type(thing), name, None) for thing in x.options.things if thing is not None] or [None]
    if isinstance(first, types.FunctionType) and "__class__" not in first.__code__.co_freevars and all(one is first for one in others):
        return types.MethodType(first, x)          # but super() asks what self is
    try:
        return _of_each(x, lambda thing: HANDLERS["attribute_of"](thing, name))
    except AttributeError:
        return refuse(x)


def table(items: Any, x: Choice) -> Any:
    """items[x]."""
    if isinstance(items, np.ndarray | Tracer):
        return HANDLERS["item_of"](items, decided(x))
    return items[decided(x)] if x.has_value else _of_each(x, lambda thing: HANDLERS["item_of"](items, thing))


def place_of(index: Any) -> Any:
    """What stands in brackets where an element is assigned to: numbers in the places of choices of numbers."""
    if is_one_of_known(index):
        return index
    return tuple(map(decided, index)) if type(index) is tuple else decided(index)


def is_one_of_known(x: Any) -> bool:
    """Whether it is always one of several known things that are no numbers: a key of a dictionary."""
    return type(x) is Choice and not x.has_value and not is_unsure(x) and not all(isinstance(thing, int) for thing in x.options.things)


HANDLERS["is_one_of_known"] = is_one_of_known


def found_by(function: Any, args: tuple[Any, ...]) -> Any:
    """What a method of a string, list or tuple gives that looks for one of several things, "ACGT".index(base); None of other calls."""
    is_sought = type(getattr(function, "__self__", None)) in (str, list, tuple) and function.__name__ in ("count", "find", "index")
    if not is_sought or len(args) != 1 or type(args[0]) is not Choice or args[0].has_value:
        return None
    return _of_each(args[0], function)


def _of_each(x: Choice, take: Callable[[Any], Any]) -> Any:
    """What is taken of the thing that it is; nothing is taken of None."""
    places = [place for place, thing in enumerate(x.options.things) if thing is not None]
    found = [take(x.options.things[place]) for place in places]
    if all(same(one, found[0]) for one in found):
        return found[0]
    if all(map(is_number, found)):
        chosen = found[0]
        for place, one in zip(places[1:], found[1:], strict=True):
            chosen = call(choose_number, x.which == place, one, chosen)
        return chosen
    if all(isinstance(one, Tracer | np.ndarray) and np.shape(one) == np.shape(found[0]) for one in found):
        chosen = found[0]
        for place, one in zip(places[1:], found[1:], strict=True):
            chosen = np.where(x.which == place, one, chosen)
        return chosen
    if all(type(one) in (list, tuple) for one in found):
        order = [places.index(place) if place in places else 0 for place in range(len(x.options.things))]
        return HANDLERS["one_of_values"](found, call(as_tracer, np.array(order))[x.which])
    if not all(map(is_known, found)):
        refuse(x, found)
    joined = Options(found)
    numbers = dict(zip(places, [joined.place(one) for one in found], strict=True))
    which = _where(x, [np.int64(numbers.get(place, 0)) for place in range(len(x.options.things))], None)
    return _made(which, None, joined, False)


def in_order(column: Sequence[Any], order: Any) -> list[Any]:
    """Known things, of which data say what comes where: column[order[0]], column[order[1]] ..."""
    if all(same(one, column[0]) for one in column):
        return list(column)
    if not all(map(is_known, column)):
        raise UnsupportedError("sorted() by traced keys: a number and something else are in one place\n"
                               "  hint: have numbers in all, np.nan or -1 in the place of what is none")
    options = Options(column)
    which = call(as_tracer, np.array([options.place(thing) for thing in column]))[order]
    return [_made(which[k], None, options, False) for k in range(len(column))]


HANDLERS["things_in_order"] = in_order


# ----- both sides of a branch, and what a loop carries
def parts(x: Any) -> tuple[tuple[Any, ...], Any, bool]:
    """Which known things it may be, its value, and whether there is one."""
    if type(x) is Choice:
        return x.options.things, x.value, x.has_value
    return ((x,), None, False) if is_known(x) else ((), x, True)


def covering(x: Any, y: Any) -> Options | None:
    """The options of a choice that covers both; None where there is no such choice, or none is needed."""
    (first, one, is_value), (second, other, is_other) = parts(x), parts(y)
    if not first and not second:
        return None
    if is_value and is_other and tree.structure(one) != tree.structure(other):
        return None
    if any(not tree.leaves(value) or isinstance(value, list | dict) for value, there in ((one, is_value), (other, is_other)) if there):
        return None
    return Options([*first, *second])


def number_in(x: Any, options: Options, which: Any = None) -> Any:
    """What `which` of a covering choice is for x; in the place of its own number, that of another region may be given."""
    if type(x) is not Choice:
        return np.int64(VALUE if not is_known(x) else options.place(x))
    return renumbered(x.which if which is None else which, x.options, options, functools.partial(call, choose_number))


def renumbered(which: Any, own: Options, options: Options, choose: Callable[[Any, Any, Any], Any] = np.where) -> Any:
    """The number of one of `own`, or a column of numbers, as one of `options`."""
    found = which
    for place, thing in enumerate(own.things):
        number = options.place(thing)
        if number != place:
            found = choose(which == place, np.int64(number), found)
    return found


def joined(which: Any, value: Any, options: Options, has_value: bool) -> Choice:
    """A choice of its parts."""
    return _made(which, value, options, has_value)


def on_entry(start: Any, end: Any, nothing_like: Callable[[Any], Any]) -> Choice | None:
    """What a loop carries on entry, for a variable that is `start` before it and `end` after an iteration."""
    options = covering(start, end)
    if options is None:
        return None
    (_, one, is_value), (_, other, is_other) = parts(start), parts(end)
    value = one if is_value else tree.map(_undefined, nothing_like(other)) if is_other else None
    return _made(number_in(start, options), value, options, is_value or is_other)


def becomes_choice(loop: Any, name: str, start: Any, end: Any, nothing_like: Callable[[Any], Any]) -> bool:
    """Whether a variable of a loop, one kind of thing before an iteration and another one after it, is to be carried as a choice."""
    if not (is_known(start) or is_known(end) or Choice in (type(start), type(end))) or loop.scope.owns(end):
        return False
    if name in loop.carried and tree.structure(start) == tree.structure(end):
        return False
    if isinstance(start, types.FunctionType) and isinstance(end, types.FunctionType) and start.__code__ is end.__code__:
        not_capturable(f"{name} is a function that is made anew in every iteration, and may be called in the next one")
    if loop.count is not None and is_known(start) and not is_known(end) and type(end) is not Choice:
        return False                               # in all iterations but the first it is a value
    choice = None if end is UNBOUND or (start is UNBOUND and is_known(end)) else call(on_entry, start, end, nothing_like)
    if choice is not None:
        loop.entry[name] = choice
        loop.kinds.pop(name, None)
    return choice is not None


def _undefined(leaf: Any) -> Any:
    """In the place of a value that is not there: nan, so that nobody takes it for one."""
    return leaf + np.nan if isinstance(leaf, np.ndarray | np.inexact | float) and np.asarray(leaf).dtype.kind in "fc" else leaf


def fitted(end: Any, start: Any) -> Any:
    """A value, thing or choice as a choice with the options of `start`; as it is where it has others."""
    options = covering(start, end)
    if type(start) is not Choice or options != start.options:
        return end
    _, value, there = parts(end)
    if there and not start.has_value:
        return end
    return _made(number_in(end, options), value if there else start.value, options, start.has_value)


def undefined(value: Value) -> Value:
    """Like `_undefined`, in the current record."""
    number = np.nan if value.dtype.kind in "fc" else zero_of(value.dtype)
    return ops.full(value=number, shape=value.shape, dtype=value.dtype)
