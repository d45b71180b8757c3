"""Walks over syntax trees and copies of them: what Python's own do."""

from __future__ import annotations

import ast
import copy
import inspect
from typing import Any

import pytest

from bwcompiler.frontend.source.syntax import nodes, rewriting
from bwcompiler.frontend.source.syntax.definitions import lookup
from bwcompiler.frontend.source.syntax.notes import LIVE_OUT
from bwcompiler.frontend.source.syntax.statements import jumps

_STATEMENTS = """
import numpy as np, math
from os import path as p, sep
async def coroutine(a, /, b: int = 1, *rest: int, c, d=2, **more) -> int:
    async for x in y: await x
    async with u as v, w: pass
    return [i async for i in z if i]
class Inner(Base, key=1):
    field: int = 3
def f(x, y=lambda: 0):
    global g
    nonlocal_ = {**x, 1: 2, 'a': (yield)}
    try:
        raise ValueError(f'{x!r:>{y}}') from None
    except (A, B) as error:
        del error.x, y[1:2, ::3]
    else:
        assert x, 'no'
    finally:
        while not x < y <= 3 and (n := 4) or -x @ y:
            continue
        else:
            print(*x, sep='', **y)
    match x:
        case {'a': 1, **rest} | [1, *_] | A(b=2) as z if z: pass
        case None: pass
    x += 1 if y else 2
    with a as (b, [c, *d]): b.c[0] = {e for e in d}
    return {k: v for k, v in x.items()}
"""
_TREES = [ast.parse(_STATEMENTS), *[ast.parse(inspect.getsource(module)) for module in (nodes, jumps, rewriting, lookup)]]


def _places(tree: ast.AST) -> str:
    return ast.dump(tree, include_attributes=True)


@pytest.mark.parametrize("tree", _TREES, ids=range(len(_TREES)))
def test_walks_meet_what_those_of_python_meet(tree: ast.Module) -> None:
    signs = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    expected = [node for node in ast.walk(tree) if not isinstance(node, signs)]
    found = nodes.walk(tree)
    assert len(found) == len(expected) and all(one is other for one, other in zip(found, expected, strict=True))
    for node in expected:
        assert [id(one) for one in nodes.children(node)] == [id(one) for one in ast.iter_child_nodes(node) if not isinstance(one, signs)]


@pytest.mark.parametrize("tree", _TREES, ids=range(len(_TREES)))
def test_copies_are_equal_and_apart(tree: Any) -> None:
    tree = copy.deepcopy(tree)
    LIVE_OUT.put(tree.body[0], frozenset(("x",)))
    before = _places(tree)
    made = nodes.copied(tree)
    assert _places(made) == before and LIVE_OUT.of(made.body[0]) == {"x"}
    assert not {id(node) for node in nodes.walk(made)} & {id(node) for node in nodes.walk(tree)}
    for node in nodes.walk(made):
        node.__dict__.pop("lineno", None)
    assert _places(tree) == before
    assert [_places(one) for one in nodes.copies(tree.body)] == [_places(one) for one in tree.body]


@pytest.mark.parametrize("tree", _TREES, ids=range(len(_TREES)))
def test_nodes_without_a_place_have_that_of_the_node_around(tree: ast.Module) -> None:
    for every in (2, 3, 7, 1):
        bare = copy.deepcopy(tree)
        for number, node in enumerate(nodes.walk(bare)):
            if number % every == 0:
                for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")[number % 4:]:
                    node.__dict__.pop(name, None)
        expected = ast.fix_missing_locations(copy.deepcopy(bare))
        assert nodes.placed(bare) is bare and _places(bare) == _places(expected)
