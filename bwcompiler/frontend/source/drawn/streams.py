"""Generators of random numbers in captured loops and branches, where data decide how many numbers were drawn before.

What is drawn outside of these is known while tracing.  Inside, the program draws: it carries the state of the generator in an array, and
each call passes that to NumPy's own generator and takes back the next state.  The numbers are those that NumPy gives.  The function is
traced again for this; where it is then refused, once more with numbers that are all known, in unrolled loops.
"""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable, Container, Sequence
from typing import Any, NoReturn

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.source.changes import changed
from bwcompiler.frontend.source.concrete.makers import require_traced
from bwcompiler.frontend.source.drawn.draws import bits_of, is_bits, is_generator, moved, moves
from bwcompiler.frontend.source.drawn.states import State
from bwcompiler.frontend.source.drawn.tables import Place, place_in_tables, turn_off
from bwcompiler.frontend.source.variables import not_capturable, open_policy
from bwcompiler.frontend.tracing.callbacks import host_call
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import as_tracer, known_parts
from bwcompiler.frontend.tracing.policy import SERIAL, Policy, Recapture, Site
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer, fresh

_WANTED: Site = ("", 0, SERIAL)                # in `Policy.bounded`: True where programs draw; False where that was tried and refused
_OF_MANY = frozenset(("bytes", "get_state", "getstate", "spawn", "set_state", "setstate", "sample", "choices"))
_PARAMETER = ("which draws from a distribution with a traced parameter, by which its numbers have no derivative here\n  hint: draw "
              "standard ones outside, pass them, and move and scale them: loc + scale * z")
_AS_DATA_SAY = "which draws numbers, or does not, as data decides: draw them before"
_LENT = ("as data decide, where another generator, or the function itself, uses its bit generator, too\n  hint: another generator for "
         "that, np.random.default_rng(another seed)")
_COPIED = "after it has drawn as data decide\n  hint: copy it before, or make another one, np.random.default_rng(another seed)"
_BITS = frozenset(("bit_generator", "_bit_generator"))
_CHANGING = frozenset(("seed", "shuffle"))
_TAKING_SIZES = frozenset(("permutation", "rand", "randn", "random_sample"))


def seeded(generator: Any, is_anew: bool = False) -> None:
    """A generator was made or seeded (is_anew) outside of loops: from here on there is a stream of its numbers."""
    policy = open_policy()
    if policy is None or not is_generator(generator):
        return
    before = policy.remembered.get((Stream, id(generator)))
    if before is not None and not is_anew:         # `default_rng` of a generator is that generator
        return
    others = [] if before is not None else _of_bits(bits_of(generator), policy)
    stream = policy.remembered[Stream, id(generator)] = Stream(generator, policy.bounded.get(_WANTED, False))
    stream.is_lent = bool(others) or (before is not None and before.is_lent)
    for other in others:
        other.lend(policy)


def lend(x: Any, name: str = "") -> None:
    """x.name is read, or set: where this gives others the bits of a generator, they may draw of them, or set their state."""
    policy = open_policy()
    if policy is not None and ((name in _BITS and is_generator(x)) or is_bits(x)):
        for stream in _of_bits(bits_of(x), policy):
            stream.lend(policy)


def _of_bits(bits: Any, policy: Policy) -> list[Stream]:
    return [stream for stream in policy.remembered.values() if type(stream) is Stream and bits_of(stream.generator) is bits]


def require_known(copied: Container[int]) -> None:
    """Things of these ids are copied: a generator of which the program has drawn is not in the state that the program runs in."""
    policy = open_policy()
    for stream in () if policy is None else policy.remembered.values():
        if type(stream) is Stream and stream.touched and id(stream.generator) in copied:
            stream.refuse("__deepcopy__", _COPIED)


HANDLERS.update(lend=lend, require_known_state=require_known)


def stream_of(generator: Any, policy: Policy) -> Stream | None:
    """The stream of a generator that this attempt to trace the function has made; None where its numbers have to be known."""
    return policy.remembered.get((Stream, id(generator))) if policy.bounded.get(_WANTED, True) else None


def draws_known(generator: Any) -> bool:
    """Whether the function has made a generator, and here knows all numbers that it has drawn, so that it knows the next ones."""
    policy = open_policy()
    stream = None if policy is None else policy.remembered.get((Stream, id(generator)))
    return stream is not None and stream.region is open_region() and not stream.touched


def drawing(function: Any, policy: Policy) -> Callable[..., Any] | None:
    """SciPy's `rvs`, which draws from the generator that it is given; in loops and branches this is not done once for all."""
    if function.__name__ != "rvs" or not str(function.__module__).startswith("scipy.stats"):
        return None

    def drawn(*args: Any, **kwargs: Any) -> Any:
        generator = kwargs.get("random_state")
        stream = None if generator is None else stream_of(generator, policy)
        if policy.depth and not isinstance(generator, int | np.integer):
            not_capturable("it calls rvs(), which draws numbers, or does not, as data decides: draw them before")
        if stream is not None and stream.touched:
            stream.refuse("rvs")
        found = function(*args, **kwargs)
        if stream is not None:
            stream.follow()
        return found
    return drawn


def without_streams(policy: Policy) -> bool:
    """The function is refused: whether it is to be traced again, as programs drew numbers, with numbers that are all known."""
    was_wanted: bool = policy.bounded.get(_WANTED, False)
    if was_wanted:
        policy.bounded[_WANTED] = False
    return was_wanted


HANDLERS["without_streams"] = without_streams


def _needs_program(owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether numbers are drawn from a distribution that data decide, and are not to be had from others that are known."""
    parts = (*args, *kwargs.values())
    if not any(isinstance(part, Tracer) and part.ndim + (part.dtype.kind in "fc") for part in parts):
        return False
    return not moves(owner, name) or (name == "choice" and isinstance(kwargs.get("p", args[3] if len(args) > 3 else None), Tracer))


def _again(policy: Policy) -> NoReturn:
    """The function is traced again, for a program that draws."""
    policy.bounded[_WANTED] = True
    number = len([site for site in policy.unrolled if site[0] == "" and site[2] == SERIAL])
    raise Recapture(("", number, SERIAL), TracerError(at(current_source(), "random numbers are drawn as data decide")))


class Stream:
    """The numbers of one generator.

    words    its state, as an array that loops and branches carry; None where the program does not draw.
    is_lent  whether anything else may use its bits: then the program does not draw, as it knows nothing of that.
    """

    def __init__(self, generator: Any, is_wanted: bool) -> None:
        self.generator = generator
        self.region = open_region()
        self.is_lent = False
        self.state = State(generator)
        self.words: Any = call(as_tracer, self.state.words(generator)).copy() if is_wanted else None
        self._known = None if self.words is None else self.words._storage.value

    @property
    def touched(self) -> bool:
        """Whether the program has drawn, so that the generator itself is behind."""
        return self.words is not None and self.words._storage.value is not self._known

    def lend(self, policy: Policy) -> None:
        """Something else may use its bits from here on."""
        self.is_lent = True
        turn_off(policy, self.generator)
        if self.touched:
            self.refuse("bit_generator", _LENT)

    def method(self, name: str, plain: Callable[..., Any], policy: Policy) -> Callable[..., Any]:
        """A method of the generator; plain: what is called where its numbers are known."""
        def drawn(*args: Any, **kwargs: Any) -> Any:
            is_inside = open_region() is not self.region
            if policy.depth and not is_inside:     # something is tried that may only compute
                self.refuse(name)
            found = self._tabled(name, args, kwargs, policy) if is_inside and not self.is_lent else None
            if found is not None:
                return found
            is_asked = is_inside or self.touched or _needs_program(self.generator, name, args, kwargs)
            if is_asked and (self.is_lent or name.startswith("_") or name in _OF_MANY):
                self.refuse(name, _LENT if self.is_lent else _AS_DATA_SAY)
            if is_asked:
                return self.drawn(name, args, kwargs) if self.words is not None else _again(policy)
            found = plain(*args, **kwargs)
            self.follow()
            return found
        return drawn

    def _tabled(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], policy: Policy) -> Any:
        """Numbers that each iteration of a loop draws alike, from a table; None where that is not so."""
        if self.touched or name.startswith("_") or name in _OF_MANY or name in _CHANGING:
            turn_off(policy, self.generator)
            return None
        place = place_in_tables(policy, self.region, open_region(), self.generator, self.follow)
        if place is None:
            turn_off(policy, self.generator)
            return None
        rows = _Rows(place)
        found = moved(rows, self.generator, name, args, kwargs)
        row = rows.row(name, args, kwargs) if found is None else found[0]
        if rows.is_refused:
            place.tables.off()
        return row

    def follow(self) -> None:
        """The generator itself has drawn: the program goes on from there."""
        if self.words is not None:
            self.words[...] = self.state.words(self.generator)
            self._known = self.words._storage.value

    def drawn(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Numbers that the program draws."""
        if name == "seed":
            not_capturable("it seeds a generator of random numbers, in a loop or branch, or after the program has drawn")
        if name == "shuffle":
            return self._shuffled(*args, **kwargs)
        found = moved(_Drawing(self), self.generator, name, args, kwargs)
        return self.call(name, args, kwargs) if found is None else found[0]

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One call of NumPy's method by the program; parameters that are floats have no derivative here."""
        leaves, structure = tree.flatten(_with_known_sizes(getattr(self.generator, name), args, kwargs))
        given = {place: leaf for place, leaf in enumerate(leaves) if isinstance(leaf, Tracer | np.ndarray)}
        known = tuple([None if place in given else leaf for place, leaf in enumerate(leaves)])
        draw = _Draw(self.state, name, structure, known, tuple(given))
        example = draw.example([_likely(leaf) for leaf in given.values()], self.generator)
        has_slope = any(isinstance(leaf, Tracer) and leaf.dtype.kind == "f" for leaf in given.values())
        if has_slope and np.asarray(example).dtype.kind == "f":
            self.refuse(name, _PARAMETER)
        if np.asarray(example).dtype.kind not in "biuf":
            self.refuse(name)
        operands = [_without_slope(leaf) if isinstance(leaf, Tracer) else leaf for leaf in given.values()]
        found = host_call(draw, draw(self.state.words(self.generator), *map(_likely, given.values())), (self.words, *operands))
        size = self.words.shape[0]
        self.words[...] = found[:size].astype(np.int64)
        return _restored(found[size:], example)

    def _shuffled(self, x: Any, axis: int = 0) -> None:
        if not isinstance(x, np.ndarray | Tracer) or isinstance(self.generator, random.Random):
            self.refuse("shuffle")
        order = self.call("permutation", (x.shape[axis],), {})
        if type(x) is np.ndarray:
            changed(x)
            require_traced(x, order)
        x[...] = np.take(x, order, axis)

    def refuse(self, name: str, why: str = _AS_DATA_SAY) -> NoReturn:
        """What programs do not draw."""
        policy = open_policy()
        text = f"it calls {type(self.generator).__name__}.{name}(), {why}"
        if policy is not None and policy.depth:
            not_capturable(text)
        raise TracerError(at(current_source(), text))


def _with_known_sizes(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a method, of which those that say how many numbers it gives have to be known."""
    if method.__name__ in _TAKING_SIZES:
        return known_parts(args), kwargs
    names = list(inspect.signature(method).parameters)
    known = tuple([known_parts(arg) if names[place:place + 1] == ["size"] else arg for place, arg in enumerate(args)])
    return known, {name: known_parts(arg) if name == "size" else arg for name, arg in kwargs.items()}


class _Rows:
    """A generator whose methods read what an iteration draws from tables."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.is_refused = False

    def row(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = _with_known_sizes(getattr(self.place.tables.generator, name), args, kwargs)
        is_known = not any(isinstance(leaf, Tracer) for leaf in tree.leaves((args, kwargs)))
        found = self.place.row(name, args, kwargs) if is_known else None
        self.is_refused = self.is_refused or found is None
        return 0.0 if found is None else found

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self.row(name, args, kwargs)


class _Drawing:
    """A generator whose methods are calls by the program, of parameters that are known."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self.stream.call(name, args, kwargs)


_SMALL, _REMEMBERED = 1 << 10, 1 << 12              # bytes of a state and what it gives; how many states


class _Draw:
    """What the program calls: a method of a generator in a state.  Equal where they do the same, so that programs are compiled once."""

    def __init__(self, state: State, name: str, structure: Any, known: tuple[Any, ...], traced: tuple[int, ...]) -> None:
        self.state = state
        self.name = name
        self.structure = structure
        self.known = known
        self.traced = traced
        self._drawn: dict[tuple[bytes, ...], np.ndarray[Any, Any]] = {}

    def _key(self) -> tuple[Any, ...]:
        return type(self.state.generator), self.state.kind, self.name, str(self.structure), repr(self.known), self.traced

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Draw) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __call__(self, words: Any, *operands: Any) -> Any:
        """The next state and the numbers, in one array: programs call once for each result.

        A program that seeds its generator is in the same states in each of its runs, so that what was drawn is remembered.
        """
        key = (words.tobytes(), *[np.asarray(operand).tobytes() for operand in operands])
        known = self._drawn.get(key)
        if known is not None:
            return known
        with self.state.lock:
            generator = self.state.at(words)
            found = np.asarray(self._method(generator, operands))
            after = self.state.words(generator)
        result = np.concatenate([after.astype(np.float64), _written(found)])
        if sum(map(len, key)) + result.nbytes <= _SMALL and len(self._drawn) < _REMEMBERED:
            result.flags.writeable = False
            self._drawn[key] = result
        return result

    def _method(self, generator: Any, operands: Any) -> Any:
        leaves = list(self.known)
        for place, operand in zip(self.traced, operands, strict=True):
            leaves[place] = operand if np.ndim(operand) else np.asarray(operand).item()
        args, kwargs = tree.unflatten(self.structure, leaves)
        return getattr(generator, self.name)(*args, **kwargs)

    def example(self, operands: Sequence[Any], generator: Any) -> Any:
        """What the method gives for some parameters: its type and shape."""
        return self._method(copy.deepcopy(generator), operands)


def _written(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers as floats: of an integer, the upper and the lower half."""
    if numbers.dtype.kind == "f":
        return numbers.astype(np.float64).ravel()
    integers = numbers.astype(np.int64).ravel()
    return np.stack([integers >> 32, integers & 0xFFFFFFFF], axis=1).astype(np.float64).ravel()


def _restored(bits: Any, example: Any) -> Any:
    """Numbers of the type and shape of an example, from what `_written` makes of them."""
    dtype = np.asarray(example).dtype
    found = bits.astype(dtype) if dtype.kind == "f" else ((bits[0::2].astype(np.int64) << 32) + bits[1::2].astype(np.int64)).astype(dtype)
    if np.shape(example):
        return found.reshape(np.shape(example))
    number = found[0]
    if type(example) in (int, float, bool):
        number._kind = type(example)
    return number


def _likely(leaf: Any) -> Any:
    """A parameter that most distributions have: a positive integer, a float below 1, probabilities whose sum is 1."""
    if not isinstance(leaf, Tracer):
        return leaf
    if leaf.dtype.kind in "iu":
        return np.ones(leaf.shape, leaf.dtype)
    return np.full(leaf.shape, 1 / max(leaf.shape[-1], 1) if leaf.shape else 0.5, leaf.dtype)


def _without_slope(leaf: Tracer) -> Any:
    return call(lambda: fresh(ops.stop_gradient(value_of(leaf))))
