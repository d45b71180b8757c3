"""Complex results that NumPy gives as real numbers if all happen to be real: eigenvalues, and what `np.real_if_close` is given."""

from __future__ import annotations

from typing import Any

from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region


def may_be_taken_for_real() -> bool:
    """Whether the function can be compiled again, with complex numbers: not without source code, and not inside of `try`."""
    policy = open_region().policy
    return policy is not None and not policy.tries and not policy.attempts


def taken_for_real(is_complex: Any, what: str) -> bool:
    """Whether a result is taken for real; the program checks that it is not complex.

    Where it is, the function is compiled once more, with complex numbers; programs that cannot be have these from the start.
    """
    policy = open_region().policy
    if policy is None:
        return False
    policy.may_be_complex = True
    if policy.real_results:
        HANDLERS["raise_where"](is_complex, IndexError(f"{what}, and were taken for real"))
    return policy.real_results
