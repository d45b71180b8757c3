# ruff: noqa: F507, UP031, UP032
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
    lambda x: x * len(f"{x[0]:.2f}"), lambda x: x * len(repr(x[0])), lambda x: x * len("%s" % x[0]),
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
            print(place, part.rjust(40).upper(), "/".join(str(v) for v in x), "{:.1f}".format(x[0]), labels["first"])
        return x * len(parts) if f"{x[0]}" else x

    np.testing.assert_array_equal(bw.jit(told)(X), 3 * X)
    assert capsys.readouterr().out.count("<traced f64[]") == 3 * 6
    assert bar.description.startswith("sum <traced f64[]")


def test_texts_made_by_percent_are_shown(capsys):
    def told(x):
        k = int(x[1])
        print("%.3f and %d of %s" % (x[0], k, "three"), "%(a)8.2e, %(b)s" % {"a": x[1], "b": x}, "%s" % x[0], "100 %% of %+d" % x[1])
        text = "%*.*f|" % (12, 3, x[2])
        text %= ()
        for i in range(20):
            x = x * 1.5
            print("step %d: %.3f" % (i, x[0]))
            if x[0] > 3:
                print("large: %d, {:.2f}".format(x[0]) % int(x[0]))
        while x[0] > 1:
            x = x / 2
            print("smaller: %g" % np.sum(x))
        return x

    with pytest.warns(bw.errors.LeftOutWarning) as caught:
        found = bw.jit(told)(X)
    assert len(caught) == 3
    assert capsys.readouterr().out.count("<traced") == 6
    np.testing.assert_array_equal(found, told(X.copy()))


@pytest.mark.parametrize("text", ["%d", "%5d|", "%-5d|", "%05d", "%+d", "% d", "%i and %%", "%u", "%x", "%#o", "%s", "%9s|", "%-9s|", "%.2f", "%8.3e|",
                                  "%-8.1f|", "%+.0f", "%g", "%G", "%E", "%#.3g", "%f", "% .1f", "%08.2f"])
@pytest.mark.parametrize("value", [12.25, -3.5, 7, -7])
def test_percent_shows_what_python_shows(text, value):
    """In the text of an exception, whose numbers are known when it is raised."""
    def program(x, scale):
        v = x * scale
        if v < 100:
            raise ValueError(text % v)
        return x
    if isinstance(value, float) and text[-1] in "xo":
        return                                     # no conversion of a float
    if isinstance(value, int):
        number, scale = np.int64(value), np.int64(1)
    else:
        number, scale = value, 1.0
    with pytest.raises(ValueError, match=re.escape(text % (number * scale))):
        bw.jit(program)(np.asarray(number), np.asarray(scale))


def test_percent_with_keys_and_sizes_in_an_exception():
    def program(x):
        if x[0] < 100:
            raise ValueError("%(a).2f, %(b)s, %(a)d" % {"a": x[0], "b": "text"} + " %*d, %-*.*f|" % (6, int(x[1]), 9, 2, x[2]))
        return x
    with pytest.raises(ValueError, match=re.escape("1.50, text, 1     12, 3.00     |")):
        bw.jit(program)(X)


@pytest.mark.parametrize("make", [lambda x: "%.2f" % (x[0], x[1]), lambda x: "%.2f %.2f" % x[0], lambda x: "%.2f" % x], ids=["more", "fewer", "array"])
def test_what_percent_does_not_take(make):
    with pytest.raises((TypeError, TracerError)):
        bw.jit(lambda x: x * len([make(x)]))(X)
