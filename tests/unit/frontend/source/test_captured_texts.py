"""Texts that traced numbers stand in are shown and kept; what asks them is refused, as they are not the numbers'."""

import functools
import re

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError

X = np.array([1.5, 12.25, 3.0])


class Bar:
    description = ""

    def show(self, text):
        self.description = text


@functools.lru_cache
def length(text):
    return len(text)


def entered(x):
    table = {}
    table[f"{x[0]:.2f}"] = 1.0
    table[f"{x[1]:.2f}"] = 2.0
    return x * len(table)


def paired(x):
    table = {}
    table[(str(x[0]), 1)] = 2.0
    return x * table[("1.5", 1)]


def collected(x):
    found = set()
    found.add(f"{x[0]}")
    return x * len(found)


def counted(x):
    number = 0
    for _ in f"{x[0]:.3f}":
        number += 1
    return x * number


def numbered(x):
    return x * sum([k for k, _ in enumerate(str(x[0]))])


def taken_apart(x):
    _, *rest = str(x[0])
    return x * len(rest)


def matched(x):
    match f"{x[0]}":
        case "1.5":
            return x
        case _:
            return -x


ASKING = [
    entered, paired, collected, counted, numbered, taken_apart, matched,
    lambda x: x * len(f"{x[0]:.2f}"), lambda x: x * len(repr(x[0])), lambda x: x * len("%s" % x[0]),  # noqa: UP031
    lambda x: x * {f"{x[0]:.2f}": 1.0}.get("1.50", 7.0), lambda x: x * len({str(v): v for v in x}), lambda x: x * len({str(v) for v in x}),
    lambda x: x if "1.5" in str(x[0]) else -x, lambda x: x if "1.5" in [str(v) for v in x] else -x,
    lambda x: x if f"{x[0]}".startswith("1") else -x, lambda x: x if "1.5".startswith(str(x[0])) else -x,
    lambda x: x * len(f"{x[0]:.2f}".split(".")), lambda x: x * len(str.split(f"{x[0]:.2f}", ".")), lambda x: x * len(f"{x[0]:.3f}"[:3]),
    lambda x: x if (str(x[0]), 1) == ("1.5", 1) else -x, lambda x: x * [str(v) for v in x].index("12.25"),
    lambda x: x * float(f"{x[0]:.1f}"), lambda x: x * (hash(str(x[0])) % 7), lambda x: x * len(sorted([f"{v}" for v in x])[0]),
    lambda x: x * len(max(str(v) for v in x)), lambda x: x * len(re.findall("1", str(x[0]))), lambda x: x * length(str(x[0])),
    lambda x: x * getattr(Bar, str(x[0]), 3.0), lambda x: x * {"1.5": 2.0}.setdefault(str(x[0]), 5.0)]


@pytest.mark.parametrize("function", ASKING, ids=range(len(ASKING)))
def test_what_asks_a_text_is_refused(function):
    with pytest.raises(TracerError, match=r"a text that a traced value stands in .*\n  hint: compare the numbers"):
        bw.jit(function)(X)


def test_texts_are_shown_and_kept(capsys):
    bar = Bar()

    def told(x):
        parts = [f"{v:.2f}" for v in x]
        bar.show(f"sum {np.sum(x):.3f}")
        setattr(bar, "last", f"{x[-1]}")                 # noqa: B010
        labels = {"first": str(x[0]), "all": ", ".join(parts)}
        for place, part in enumerate(reversed(parts)):
            print(place, part.rjust(40).upper(), "/".join(str(v) for v in x), "{:.1f}".format(x[0]), labels["first"])  # noqa: UP032
        return x * len(parts) if f"{x[0]}" else x

    np.testing.assert_array_equal(bw.jit(told)(X), 3 * X)
    assert capsys.readouterr().out.count("<traced f64[]") == 3 * 6
    assert bar.description.startswith("sum <traced f64[]")
