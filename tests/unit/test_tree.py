"""The pytree facade: what is a node, what is a leaf, and how leaves are named."""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import tree

Pair = namedtuple("Pair", ["x", "y"])


@dataclasses.dataclass
class Model:
    weights: Any
    bias: Any
    activation: str = dataclasses.field(default="tanh", metadata={"static": True})


@dataclasses.dataclass(frozen=True)
class Checked:
    value: Any

    def __post_init__(self) -> None:
        if not isinstance(self.value, np.ndarray):
            raise TypeError("arrays only")


def test_flatten_and_unflatten() -> None:
    nested = {"b": [1, (2, None)], "a": Pair(3, {"z": 4}), "c": OrderedDict(q=5)}
    leaves, structure = tree.flatten(nested)
    assert leaves == [3, 4, 1, 2, 5]           # dict keys are sorted, None is an empty node
    assert tree.unflatten(structure, leaves) == nested
    assert tree.leaves(nested) == leaves


def test_dataclasses_are_nodes_with_static_fields() -> None:
    model = Model(weights={"w": 1}, bias=2, activation="relu")
    leaves, structure = tree.flatten([model])
    assert leaves == [1, 2]
    [made] = tree.unflatten(structure, [10, 20])
    assert made == Model({"w": 10}, 20, "relu")
    assert structure != tree.structure([Model({"w": 1}, 2, "tanh")])
    assert structure == tree.structure([Model({"w": 5}, 6, "relu")])
    assert hash(structure) == hash(tree.structure([Model({"w": 5}, 6, "relu")]))


def test_static_fields_are_compared_by_type_and_value() -> None:
    same = lambda one, other: tree.structure(Model(1.0, 2.0, one)) == tree.structure(Model(1.0, 2.0, other))
    nan = float("nan")
    assert same(4, 4) and same("a", "".join(["a"])) and same((1, "b"), (1, "b")) and same(nan, float("nan"))
    assert not any([same(1, 1.0), same(1, True), same(0.0, -0.0), same((1,), (1.0,)), same((1, (0.0,)), (1, (-0.0,))), same(4, 5)])
    assert hash(tree.structure(Model(1.0, 2.0, nan))) == hash(tree.structure(Model(1.0, 2.0, float("nan"))))
    with pytest.raises(ValueError, match=r"other.x\[0\] is .*Model"):
        tree.match_prefix([Model(1.0, 2.0, 1)], [Model(1.0, 2.0, 1.0)], "other.x")


def test_dataclasses_are_rebuilt_without_their_checks() -> None:
    leaves, structure = tree.flatten(Checked(np.ones(1)))
    assert len(leaves) == 1
    assert tree.unflatten(structure, ["anything"]).value == "anything"


def test_a_class_with_shape_and_dtype_is_a_leaf() -> None:
    @dataclasses.dataclass
    class Shaped:
        shape: tuple[int, ...]
        dtype: Any

    spec = Shaped((2,), "f8")
    assert tree.leaves([spec]) == [spec]


def test_paths() -> None:
    params = {"b": Model(1, [2, 3]), "a": (4, Pair(5, 6))}
    assert tree.paths(params, "params") == ["params['a'][0]", "params['a'][1].x", "params['a'][1].y", "params['b'].weights",
                                            "params['b'].bias[0]", "params['b'].bias[1]"]


def test_map() -> None:
    assert tree.map(lambda a, b: a + b, {"x": 1, "y": (2, None)}, {"x": 10, "y": (20, None)}) == {"x": 11, "y": (22, None)}
    with pytest.raises(ValueError):
        tree.map(lambda a, b: a, {"x": 1}, {"z": 1})


def test_is_leaf_says_what_is_not_taken_apart() -> None:
    nested = {"a": [1, (2, 3)], "m": Model(4, 5)}
    assert tree.leaves(nested, lambda node: isinstance(node, tuple)) == [1, (2, 3), 4, 5]
    assert tree.map(len, [(1, 2), (3,)], is_leaf=lambda node: isinstance(node, tuple)) == [2, 1]
    model = nested["m"]
    found, structure = tree.flatten([model, 1], is_leaf=lambda node: isinstance(node, Model))
    assert found[0] is model and tree.unflatten(structure, found) == [model, 1]
    assert structure == tree.structure([0, 0])


def test_reduce_and_all() -> None:
    assert tree.reduce(lambda x, y: 10 * x + y, {"b": 2, "a": (1, None)}) == 12
    assert tree.reduce(lambda x, y: x + [y], (1, 2), []) == [1, 2]
    assert tree.reduce(max, (), 7) == 7
    with pytest.raises(TypeError):
        tree.reduce(max, ())
    assert tree.all({"a": 1, "b": (True,)}) and tree.all(()) and not tree.all([1, 0])


def test_paths_of_leaves() -> None:
    nested = {"net": [Pair(1.0, Model(2.0, (3.0,)))]}
    found = tree.leaves_with_path(nested)
    assert [tree.keystr(path) for path, _ in found] == ["['net'][0].x", "['net'][0].y.weights", "['net'][0].y.bias[0]"]
    assert [tree.keystr(path, simple=True, separator="/") for path, _ in found] == ["net/0/x", "net/0/y/weights", "net/0/y/bias/0"]
    assert [leaf for _, leaf in found] == tree.leaves(nested)
    pairs, structure = tree.flatten_with_path(nested)
    assert tree.unflatten(structure, [leaf for _, leaf in pairs]) == nested
    named = tree.map_with_path(lambda path, leaf, other: (tree.keystr(path[-1:], simple=True), leaf + other), nested, tree.map(lambda leaf: 10 * leaf, nested))
    assert tree.leaves(named, lambda node: type(node) is tuple and type(node[0]) is str) == [
        ("x", 11.0), ("weights", 22.0), ("0", 33.0)]


class Line:
    """A container by registration: one leaf is None at times."""

    def __init__(self, slope: Any, offset: Any = None, name: str = "line") -> None:
        self.slope, self.offset, self.name = slope, offset, name

    def __call__(self, x: Any) -> Any:
        return self.slope * x + (0.0 if self.offset is None else self.offset)


tree.register_pytree_node(Line, lambda line: ((line.slope, line.offset), line.name), lambda name, children: Line(*children, name))


@tree.register_pytree_node_class
class Boxed:
    def __init__(self, *contents: Any) -> None:
        self.contents = contents

    def tree_flatten(self) -> Any:
        return self.contents, len(self.contents)

    @classmethod
    def tree_unflatten(cls, structure: Any, children: Any) -> Boxed:
        assert structure == len(children)
        return cls(*children)


def test_registered_classes_are_containers() -> None:
    x = np.array([1.0, 2.0])
    gradient = bw.grad(lambda line, x: np.sum(line(x)))
    for _ in range(3):                                                     # the first call, and those of known form
        found = gradient(Line(x, 3.0, "mine"), x)
        assert (found.slope.tolist(), found.offset, found.name) == ([1.0, 2.0], 2.0, "mine")
    assert gradient(Line(x), x).offset is None
    made = bw.jit(lambda x: Line(x, Boxed(x, (x.sum(),))))(x)
    assert made.slope.tolist() == [1.0, 2.0] and made.offset.contents[1] == (3.0,)
    assert bw.vmap(lambda line, x: line(x), in_axes=(Line(0), 0))(Line(x), x).tolist() == [1.0, 4.0]
    last, rows = bw.scan(lambda line, x: (Line(line.slope + x), line), Line(0.0), x)
    assert last.slope == 3.0 and rows.slope.tolist() == [0.0, 1.0]
    assert tree.paths(Boxed(1, Line(2))) == ["[0]", "[1][0]"]
    assert "%boxed.0: f64[2]" in bw.jit(lambda boxed: boxed.contents[0] * 2).as_text("forward", Boxed(x, x))
    with pytest.raises(ValueError, match="already registered"):
        tree.register_pytree_node(Line, lambda line: ((), None), lambda structure, children: Line(0.0))


def test_registered_dataclasses() -> None:
    @tree.register_dataclass
    @dataclasses.dataclass
    class Plain:
        x: Any

    @dataclasses.dataclass
    class Chosen:
        x: Any
        n: int

    assert tree.register_dataclass(Chosen, data_fields=["x"], meta_fields=["n"]) is Chosen
    assert tree.leaves([Plain(1), Chosen(2, 3)]) == [1, 2]
    assert tree.map(lambda leaf: -leaf, Chosen(2, 3)) == Chosen(-2, 3)
    assert bw.grad(lambda c: c.x ** c.n)(Chosen(2.0, 3)) == Chosen(12.0, 3)
    tree.register_dataclass(Chosen, ["x"], ["n"])
    with pytest.raises(ValueError, match="Chosen is a node already"):
        tree.register_dataclass(Chosen)


def test_orders_of_keys() -> None:
    one = [Model({"b": 1.0, "a": 2.0}, None), {1: {"z": 0.0}, 0: 2.0}, np.ones(2), None]
    tree.flatten(one)                                          # as dataclasses are nodes as soon as they are met
    assert tree.key_orders(one) == ((("b", "a"), (str, str)), ((1, 0), (int, int)), (("z",), (str,)))
    assert tree.key_orders(defaultdict(float, b=1.0, a=2.0)) == tree.key_orders({"b": 1.0, "a": 2.0})
    assert tree.key_orders({1: 0.0}) != tree.key_orders({True: 0.0}) != tree.key_orders({1.0: 0.0})
    assert tree.key_orders((1.0, [np.ones(2)], "text")) == ()


@dataclasses.dataclass
class Grid:
    length: float
    count: int = dataclasses.field(metadata={"static": True})

    def __post_init__(self) -> None:
        self.step = self.length / self.count
        self.names = ["left", "right"]

    @functools.cached_property
    def area(self) -> Any:
        return self.length ** 2


def test_classes_that_are_registered_once() -> None:
    """A child that was forked while another thread did it, between the registration and what says so, registered them again."""
    made = type("Made", (), {"part": 1.0})
    for _ in range(2):
        tree.register_once(made, lambda node: ((node.part,), None), lambda _, parts: made())
    assert tree.leaves(made()) == [1.0]
    with pytest.raises(ValueError, match="already registered"):
        tree.register_pytree_node(made, lambda node: ((node.part,), None), lambda _, parts: made())


def test_attributes_that_are_no_fields_of_a_dataclass() -> None:
    grid = Grid(2.0, 4)
    leaves, structure = tree.flatten([grid])
    assert leaves == [2.0, 0.5, "left", "right"]
    assert tree.paths(grid, "grid") == ["grid.length", "grid.step", "grid.names[0]", "grid.names[1]"]
    [twice] = tree.unflatten(structure, [4.0, 1.0, "l", "r"])
    assert vars(twice) == {"length": 4.0, "count": 4, "step": 1.0, "names": ["l", "r"]}
    assert grid.area == 4.0 and tree.leaves(grid)[-1] == 4.0                   # a property with a cache is an attribute once it is there
    assert tree.structure([grid]) != structure == tree.structure([Grid(3.0, 4)]) != tree.structure([Grid(3.0, 5)])
