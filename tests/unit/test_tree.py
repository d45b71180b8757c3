"""The pytree facade: what is a node, what is a leaf, and how leaves are named."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

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
