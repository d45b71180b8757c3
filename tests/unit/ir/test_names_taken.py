"""Names that are given once: each new one costs the same."""

from __future__ import annotations

from bwcompiler.ir.texts.graph_printer import TakenNames, first_free


class Counted(set[str]):
    """A set that counts how often it is asked for a name."""

    asked = 0

    def __contains__(self, name: object) -> bool:
        self.asked += 1
        return super().__contains__(name)


def test_names_are_those_of_first_free() -> None:
    names, taken = TakenNames(["y"]), {"y"}
    for hint in ("x", "x_1", "x", "y", "x", "x_1", "x_2", "y_1", "y", "y"):
        expected = first_free(hint, taken)
        taken.add(expected)
        assert names.new(hint) == expected


def test_each_name_is_found_at_once() -> None:
    names = TakenNames()
    names._taken = asked = Counted()
    assert [names.new("m") for _ in range(1000)][-1] == "m_999" and asked.asked < 3000
