"""Minimum cuts against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from bwcompiler.passes.derivatives.minimum_cut import INFINITE, Network


def random_network(seed):
    """A network and the same one for networkx; nodes 0 and 1 are source and sink."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 30))
    ours, theirs = Network(count), nx.DiGraph()
    theirs.add_nodes_from(range(count))
    for _ in range(int(rng.integers(0, 4 * count))):
        source, target = (int(node) for node in rng.integers(count, size=2))
        if source == target or theirs.has_edge(source, target):
            continue
        endless = rng.random() < 0.1 and (source, target) != (0, 1)
        capacity = int(rng.integers(0, 20))
        ours.add(source, target, INFINITE if endless else capacity)
        theirs.add_edge(source, target, **({} if endless else {"capacity": capacity}))
    return ours, theirs


@pytest.mark.parametrize("seed", range(60))
def test_the_cut_has_the_least_capacity(seed):
    ours, theirs = random_network(seed)
    try:
        expected = nx.minimum_cut_value(theirs, 0, 1)
    except nx.NetworkXUnbounded:
        return
    side = ours.source_side(0, 1, 1 << 40)
    assert side[0] and not side[1]
    cut = [data.get("capacity", INFINITE) for u, v, data in theirs.edges(data=True) if side[u] and not side[v]]
    assert sum(cut) == expected


def test_work_is_limited():
    network = Network(100)
    for node in range(2, 99):
        network.add(node, node + 1, 3)
    network.add(0, 2, 5)
    network.add(99, 1, 5)
    assert network.source_side(0, 1, 50) is None
