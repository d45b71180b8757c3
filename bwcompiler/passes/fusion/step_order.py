"""The order of steps while they still grow: a directed acyclic graph whose nodes have ranks, updated as edges are added.

A value may join an early step although it also reads a later one, provided the later step does not depend on the early one: then
the later step, and what it depends on, are moved in front.  Every edge leads to a higher rank, so only steps between the two ranks can be
in the way.  Ranks are fractions, so that there is room between any two, and moving steps leaves the ranks of all others unchanged.
The search is bounded: every decision depends on a step's neighbourhood only.

networkx answers the same question by walking the whole graph: milliseconds for every value of a long program.  The idea to
search between two places is that of D. J. Pearce and P. H. J. Kelly, "A dynamic topological sort algorithm for directed acyclic
graphs", ACM Journal of Experimental Algorithmics 11, 2006.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MOST_MOVED = 16                # steps that make room for one


class StepOrder:
    """Steps are numbers, in the order in which they were added; `rank` is their place in the order they run in."""

    def __init__(self) -> None:
        self.rank: list[float] = []
        self.sources: list[dict[int, None]] = []

    def add(self, sources: Iterable[int]) -> int:
        """A new last step, which comes after `sources`."""
        step = len(self.rank)
        self.rank.append(float(step))
        self.sources.append(dict.fromkeys(sources))
        return step

    def moved_before(self, step: int, sources: Iterable[int]) -> Sequence[int] | None:
        """The steps to move in front of `step`, so that it comes after all of `sources`; None where one of them depends on it, or
        where that is not clear soon.
        """
        here = self.rank[step]
        pending = [source for source in sources if self.rank[source] >= here]
        if not pending:
            return ()
        found = dict.fromkeys(pending)
        while pending:
            number = pending.pop()
            if number == step or len(found) > MOST_MOVED:
                return None
            for source in self.sources[number]:
                if self.rank[source] >= here and source not in found:
                    found[source] = None
                    pending.append(source)
        return sorted(found, key=self.rank.__getitem__)

    def put_after(self, step: int, sources: Iterable[int], moved: Sequence[int]) -> None:
        """Make `step` come after `sources`, by moving what `moved_before` found."""
        if moved:
            self._move(step, moved)
        own = self.sources[step]
        for source in sources:
            if source != step:
                own[source] = None

    def _move(self, step: int, moved: Sequence[int]) -> None:
        """Give these steps, in their order, ranks below that of `step` and above those of all that they come after."""
        inside = set(moved)
        low = max([self.rank[source] for number in moved for source in self.sources[number] if source not in inside], default=-1.0)
        width = (self.rank[step] - low) / (len(moved) + 1)
        places = [low + width * number for number in range(1, len(moved) + 1)]
        if not all(a < b for a, b in zip([low, *places], [*places, self.rank[step]], strict=True)):
            self._spread()
            self._move(step, moved)
            return
        for number, place in zip(moved, places, strict=True):
            self.rank[number] = place

    def _spread(self) -> None:
        """The same order, with room between all steps again."""
        for place, step in enumerate(sorted(range(len(self.rank)), key=self.rank.__getitem__)):
            self.rank[step] = float(place)
