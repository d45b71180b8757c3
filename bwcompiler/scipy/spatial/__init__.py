"""`bw.scipy.spatial`: distances (`bw.scipy.spatial.distance`), rotations (`bw.scipy.spatial.transform`)."""

from bwcompiler.scipy.spatial import distance, transform

__all__ = ["distance", "transform"]
