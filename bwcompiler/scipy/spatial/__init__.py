"""`bw.scipy.spatial`: distances (`bw.scipy.spatial.distance`), rotations (`bw.scipy.spatial.transform`)."""

from typing import TYPE_CHECKING

from bwcompiler.scipy.missing import says_instead
from bwcompiler.scipy.spatial import distance, transform
from bwcompiler.scipy.spatial.distance import distance_matrix, minkowski_distance, minkowski_distance_p

__all__ = ["distance", "distance_matrix", "minkowski_distance", "minkowski_distance_p", "transform"]


if not TYPE_CHECKING:
    __getattr__ = says_instead("spatial", __all__)
