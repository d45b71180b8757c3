"""The order of steps that is kept while edges are added: always topological, and no edge is refused that makes no cycle."""

from __future__ import annotations

import random

import networkx as nx
import pytest

from bwcompiler.passes.fusion.step_order import MOST_MOVED, StepOrder


def put_after(order: StepOrder, step: int, sources: list[int]) -> bool:
    moved = order.moved_before(step, sources)
    if moved is not None:
        order.put_after(step, sources, moved)
    return moved is not None


def test_a_later_step_moves_in_front() -> None:
    order = StepOrder()
    early, late = order.add([]), order.add([])
    assert put_after(order, early, [late]) and order.rank[late] < order.rank[early]


def test_what_it_depends_on_moves_too() -> None:
    order = StepOrder()
    early, middle = order.add([]), order.add([])
    late = order.add([middle])
    assert put_after(order, early, [late])
    assert order.rank[middle] < order.rank[late] < order.rank[early]


def test_a_cycle_is_refused() -> None:
    order = StepOrder()
    first = order.add([])
    last = order.add([order.add([first])])
    assert not put_after(order, first, [last])
    assert not put_after(order, first, [first])


def test_a_long_search_is_refused() -> None:
    order = StepOrder()
    first, last = order.add([]), order.add([])
    for _ in range(MOST_MOVED + 1):
        last = order.add([last])
    assert not put_after(order, first, [last])


@pytest.mark.parametrize("seed", range(20))
def test_random_edges(seed: int) -> None:
    """The order agrees with all edges, and an edge is refused only if it closes a cycle (these graphs are small)."""
    chosen = random.Random(seed)
    order, graph = StepOrder(), nx.DiGraph()
    for step in range(12):
        sources = chosen.sample(range(step), min(step, chosen.randrange(2)))
        assert order.add(sources) == step
        graph.add_node(step)
        graph.add_edges_from((source, step) for source in sources)
    for _ in range(60):
        step, source = chosen.sample(range(12), 2)
        graph.add_edge(source, step)
        if put_after(order, step, [source]):
            assert nx.is_directed_acyclic_graph(graph)
            assert all(order.rank[a] < order.rank[b] for a, b in graph.edges)
        else:
            assert not nx.is_directed_acyclic_graph(graph)
            graph.remove_edge(source, step)


def test_room_for_many_moves() -> None:
    """Ranks are fractions: when there is no room between two, all are numbered anew."""
    order = StepOrder()
    first = order.add([])
    target = order.add([first])
    for _ in range(200):
        step = order.add([first])
        assert put_after(order, target, [step])
        first = step
    assert all(order.rank[a] < order.rank[b] for b, sources in enumerate(order.sources) for a in sources)
