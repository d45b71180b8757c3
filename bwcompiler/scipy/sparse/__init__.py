"""`bw.scipy.sparse`: sparse arrays whose structure is known (`arrays`), and linear systems with them (`linalg`)."""

from typing import TYPE_CHECKING

from bwcompiler.scipy.missing import says_instead
from bwcompiler.scipy.sparse import linalg
from bwcompiler.scipy.sparse.arrays import (  # noqa: F401  (captured code asks for `converted`, `product` and `elements_product`)
    converted,
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    diags,
    diags_array,
    elements_product,
    kron,
    product,
)

__all__ = ["coo_array", "coo_matrix", "csc_array", "csc_matrix", "csr_array", "csr_matrix", "diags", "diags_array", "kron", "linalg"]

if not TYPE_CHECKING:
    __getattr__ = says_instead("sparse", __all__)
