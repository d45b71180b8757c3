"""The entry: objects that consist of their attributes, such as dataclasses, as arguments and results."""

from __future__ import annotations

import copy as copies
import gc
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import numpy as np
import pytest

from bwcompiler.ir.contracts.call_signature import CallSignature, Container, Fixed, Leaf, Static
from bwcompiler.ir.contracts.plain_objects import is_plain_class
from tests.unit.runtime.programs import SCALAR, VECTOR, X, Y, copy_bytes, native, takes_slow_path, vectors
from tests.unit.runtime.test_entry_failures import leak


@dataclass
class Plain:
    left: Any
    right: Any = None

    def __post_init__(self) -> None:
        if type(self.left) is str:
            raise AssertionError("made by the constructor")


@dataclass(frozen=True)
class Frozen:
    left: Any
    right: Any


@dataclass(slots=True, weakref_slot=True)
class Slots:
    left: Any
    right: Any


@dataclass(frozen=True, slots=True)
class FrozenSlots:
    left: Any
    right: Any


@dataclass
class Derived(Plain):
    pass


@dataclass(slots=True)
class Half(Plain):
    """Has a dict from its base, where only `left` is."""

    right: Any = None


CLASSES = [Plain, Frozen, Slots, FrozenSlots, Derived, Half]
TWO = copy_bytes([(0, 2, 40), (1, 3, 40)], 4)


def pair(cls: type, *more: str, **options: Any) -> Container:
    """An object with the leaves 0 and 1, and the attributes of `more` being None."""
    return Container("instance", (Leaf(0), Leaf(1), *[Container("none")] * len(more)), ("left", "right", *more), cls, **options)


def of_pair(argument: Container, result: Container) -> CallSignature:
    return replace(vectors(2), arguments=(argument,), result=result, result_types=(VECTOR, VECTOR), result_kinds=("array", "array"))


@pytest.mark.parametrize("cls", CLASSES)
def test_objects(bind: Callable[..., Any], cls: Any) -> None:
    copy = bind(TWO, of_pair(pair(cls), pair(cls)))
    given = cls(X, Y)
    for _ in range(3):
        result = copy(given)
        assert type(result) is cls
        np.testing.assert_array_equal(result.left, X)
        np.testing.assert_array_equal(result.right, Y)
        assert not takes_slow_path(copy, result)
    for other in (*[kind(X, Y) for kind in CLASSES if kind is not cls], cls, (X, Y), {"left": X, "right": Y}, None, cls(X, None), cls(1.0, Y)):
        assert takes_slow_path(copy, other)
    object.__delattr__(given, "right")             # the class may have a default
    assert takes_slow_path(copy, given)
    object.__setattr__(given, "right", Y)
    assert not takes_slow_path(copy, given) and not takes_slow_path(copy, copies.copy(given))


def test_attributes_of_a_dict_are_these_in_any_order(bind: Callable[..., Any]) -> None:
    copy = bind(TWO, of_pair(pair(Plain), pair(Plain)))
    turned = Plain.__new__(Plain)
    turned.right, turned.left = Y, X
    np.testing.assert_array_equal(copy(turned).left, X)
    more, renamed = Plain(X, Y), Plain(X, Y)
    more.note = 1                                  # type: ignore[attr-defined]
    assert takes_slow_path(copy, more)
    del more.note                                  # type: ignore[attr-defined]
    assert not takes_slow_path(copy, more)
    del renamed.right
    renamed.other = Y                              # type: ignore[attr-defined]
    assert takes_slow_path(copy, renamed)
    renamed.__dict__ = {"left": X, "right": Y}
    assert not takes_slow_path(copy, renamed)
    renamed.__dict__ = type("Dict", (dict,), {})(left=X, right=Y)
    assert takes_slow_path(copy, renamed)


def test_other_attributes_are_in_one_order(bind: Callable[..., Any]) -> None:
    """The function may go over them."""
    copy = bind(TWO, of_pair(pair(Plain, "a", "b", extra=("a", "b")), pair(Plain, "a", "b")))

    def made(*names: str) -> Plain:
        found = Plain.__new__(Plain)
        for name in names:
            setattr(found, name, {"left": X, "right": Y}.get(name))
        return found

    for order in ("left right a b", "a left right b", "a b right left"):
        assert list(vars(copy(made(*order.split())))) == ["left", "right", "a", "b"]
    for order in ("left right b a", "b left a right", "left right a", "left right a b c", "left right a c"):
        assert takes_slow_path(copy, made(*order.split()))


def test_slots_that_are_not_set(bind: Callable[..., Any]) -> None:
    copy = bind(TWO, of_pair(pair(Slots), pair(Plain)))
    given = Slots(X, Y)
    del given.left
    assert takes_slow_path(copy, given)
    given.left = X
    assert vars(copy(given)).keys() == {"left", "right"}


def test_fixed_values(bind: Callable[..., Any]) -> None:
    """They are compared as static values are, and are the same objects in results."""
    marker = object()
    argument = Container("instance", (Leaf(0), Container("list", (Fixed(1.5), Fixed("name"), Fixed(marker)))), ("left", "right"), Plain)
    result = Container("instance", (Fixed(marker), Container("tuple", (Leaf(0), Fixed(True)))), ("left", "right"), Slots)
    copy = bind(copy_bytes([(0, 1, 40)], 2), replace(vectors(1), arguments=(argument,), result=result))
    found = copy(Plain(X, [1.5, "".join(["na", "me"]), marker]))
    assert found.left is marker and found.right[1] is True
    for others in ((1, "name", marker), (1.5, "other", marker), (1.5, "name", object()), (True, "name", marker)):
        assert takes_slow_path(copy, Plain(X, list(others)))
    assert Fixed(1.0) == Fixed(1.0) != Fixed(1) != Fixed(True) and Fixed(0.0) != Fixed(-0.0) and Fixed((1,)) != Fixed((1.0,))


def test_numbers_and_statics_in_objects(bind: Callable[..., Any]) -> None:
    signature = CallSignature(
        arguments=(Container("list", (Container("instance", (Leaf(0), Static(0)), ("left", "right"), Frozen),)),),
        argument_types=(SCALAR,), argument_kinds=("float",), result=Leaf(0), result_types=(SCALAR,), result_kinds=("scalar",))
    copy = bind(copy_bytes([(0, 1, 8)], 2), signature, (), ("mode",))
    assert [copy([Frozen(number, "mode")]) for number in (1.5, -0.25)] == [1.5, -0.25]
    assert takes_slow_path(copy, [Frozen(1.5, "other")]) and takes_slow_path(copy, [Frozen(1, "mode")])


def test_results_of_classes_that_have_changed_may_raise(bind: Callable[..., Any]) -> None:
    changing: Any = dataclass(type("Changing", (), {"__annotations__": {"left": Any, "right": Any}}))
    copy = bind(TWO, of_pair(pair(Plain), Container("list", (pair(changing),))))
    given = Plain(X, Y)
    assert type(copy(given)[0]) is changing
    changing.right = property(lambda self: self.left)
    before = sys.getrefcount(changing), sys.getrefcount(X)
    for _ in range(20):
        with pytest.raises(AttributeError, match="Changing"):
            copy(given)
    gc.collect()
    assert (sys.getrefcount(changing), sys.getrefcount(X)) == before


def test_properties_that_a_class_is_given_later_take_the_slow_path(bind: Callable[..., Any]) -> None:
    changing: Any = dataclass(type("Changing", (), {"__annotations__": {"left": Any, "right": Any}}))
    copy, given = bind(TWO, of_pair(pair(changing), pair(Plain))), changing(X, Y)
    assert not takes_slow_path(copy, given)
    changing.right = property(lambda self: 2.0)
    assert takes_slow_path(copy, given)


@pytest.mark.parametrize("cls", CLASSES)
def test_no_leak_in_objects(cls: Any) -> None:
    copy = native(TWO, of_pair(pair(cls), Container("list", (pair(cls),))))
    given, other = cls(X, Y), cls(Y, None)
    watched = [X, Y, cls, cls.__dict__, object, None, (), "left", "right"]

    def run() -> None:
        copy(given)
        copy(cls(Y, X))
        copy(other)

    assert leak(run, watched, 5_000) < 4000


def test_objects_are_not_kept() -> None:
    copy, given = native(TWO, of_pair(pair(Slots), pair(Slots))), Slots(X, Y)
    alive = weakref.ref(given), weakref.ref(copy(given))
    del given
    assert [one() for one in alive] == [None, None]


def test_the_collector_does_not_run_in_guards() -> None:
    """It runs finalizers, which could drop what guards have pointers to."""
    argument = Container("list", (Container("instance", (Leaf(0), Container("none")), ("left", "right"), Plain), Leaf(1)))
    copy = native(TWO, replace(of_pair(pair(Plain), pair(Plain)), arguments=(argument,)))
    copy([Plain(X), Y])
    threshold, enabled = gc.get_threshold(), gc.isenabled()
    items: list[Any] = []

    class Last:
        def __del__(self) -> None:
            items[1:] = [X]

    try:
        for on in (True, False):
            (gc.enable if on else gc.disable)()
            items[:] = [Plain(X), Y]
            used = [{} for _ in range(1000)]       # type: ignore[var-annotated]   # that Python keeps for the next dicts
            garbage: Any = Last()
            garbage.itself = garbage
            gc.set_threshold(1)
            del garbage
            found = copy(items)
            gc.set_threshold(*threshold)
            assert gc.isenabled() is on
            np.testing.assert_array_equal(found.right, Y)
            assert len(used) == 1000
    finally:
        gc.set_threshold(*threshold)
        (gc.enable if enabled else gc.disable)()
        gc.collect()


def test_classes_whose_objects_are_nothing_but_their_attributes() -> None:
    class Typed(Plain, Generic[TypeVar("T")]):     # type: ignore[misc]
        pass

    assert all(is_plain_class(cls, ("left", "right")) for cls in (*CLASSES, Typed))
    same = {name: vars(object)["__getattribute__"] for name in ("__getattribute__",)}
    made = lambda names, *bases: type("Made", bases, names)
    for cls in (made({"left": property(lambda self: 1.0)}, Plain), made({"__getattribute__": lambda self, name: X}, Plain),
                made({"__getattr__": lambda self, name: X}, Plain), made({"__dict__": property(lambda self: {})}, Plain),
                made({}, dict), made({}, Exception), made({}, SimpleNamespace)):
        assert not is_plain_class(cls, ("left", "right"))
    assert is_plain_class(made(same, Plain), ("left",)) and is_plain_class(made({"left": lambda self: 1.0}, Plain), ("left",))
