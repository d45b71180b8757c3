"""The rules of fusion in words: why a value may not join a group (`Refusal.rule`).

In the texts "it" is the value, "the loop" is that of the group, and `{0}` stands for the values that the rule names.  The decisions are
made in `attempt.py` and `fuse.py`.
"""

from __future__ import annotations

from bwcompiler.ir.contracts.fusion import PANEL_COLUMNS
from bwcompiler.passes.fusion.attempt import (
    MAX_IN_LONG,
    MAX_LOADS,
    MAX_MEMBERS,
    TALL_PANEL_BEYOND_CACHE,
    TALL_PANEL_LIMIT,
    WHOLE_ARRAY_LIMIT,
)

RULES = {
    "unrelated": "it runs over other extents, and reads nothing that the loop computes",
    "search": "a search for a position (argmax, argmin) has a loop of its own",
    "members": f"the loop has {MAX_MEMBERS} operations already ({MAX_IN_LONG} where it is long), the most that one loop may have",
    "loads": f"the loop would read more than {MAX_LOADS} different arrays",
    "shifted": "it reads {0} at other elements than the one that the loop is at",
    "updated": "it reads {0}, which the loop updates in place and finishes only at its end",
    "axes": "it reads {0} along other axes than the loop runs over",
    "reduction": "it reads {0}, which is complete only when the whole loop is",
    "whole": f"it reads {{0}}, a reduction of a whole array of more than {WHOLE_ARRAY_LIMIT} elements: "
             "a second loop costs no more than a second pass in the same loop",
    "tall": f"it reads {{0}}, a reduction of columns of which {PANEL_COLUMNS} have more than {TALL_PANEL_LIMIT} elements "
            f"({TALL_PANEL_BEYOND_CACHE} of a large array): a second loop costs no more than a second pass in the same loop",
    "far apart": f"it runs over columns for each {{0}} of the loop, and {PANEL_COLUMNS} columns have more than {TALL_PANEL_LIMIT} elements "
                 f"({TALL_PANEL_BEYOND_CACHE} of a large array): loops over rows go along memory",
    "extents": "it runs over fewer axes than the loop, and these are not the loop's outer ones",
    "columns": "it reduces axes that the loop would have to visit in another order",
    "settled": "it runs over more axes than the loop, whose axes a reduction has settled",
    "scalars": "it runs over more axes than the loop, which would compute {0} one number at a time, and not in vectors",
    "alone": "the loop, whose rows are short, would compute it one number at a time, and not in vectors",
    "order": "it reads {0}, computed only after the loop",
    "versions": "the loop would read and write one element of two versions of an array",
}
