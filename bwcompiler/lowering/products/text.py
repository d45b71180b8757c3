"""`products_text`: the module of a dtype, put together of what the other files give."""

from __future__ import annotations

from bwcompiler.ir.types import DType
from bwcompiler.lowering.products.blocked import blocked_text
from bwcompiler.lowering.products.call import call_texts
from bwcompiler.lowering.products.packing import packing_texts
from bwcompiler.lowering.products.routine import Routine, Tiling
from bwcompiler.lowering.products.tiles import tile_texts
from bwcompiler.lowering.products.vectors import vector_texts
from bwcompiler.target import Target


def products_text(dtype: DType, target: Target) -> str:
    """The module of a dtype; it exports `bw_product_<dtype>`."""
    tiling = Tiling.of(dtype, target)
    made = [*tile_texts(tiling), *packing_texts(tiling), *vector_texts(tiling), blocked_text(tiling), *call_texts(tiling)]
    declares = dict.fromkeys([line for text in made if isinstance(text, Routine) for line in text.declares])
    texts = [text.text() if isinstance(text, Routine) else text for text in made]
    return "\n".join([*texts, *declares, f"attributes #1 = {{ noinline {target.function_attributes} }}", ""])
