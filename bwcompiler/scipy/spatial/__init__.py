"""`bw.scipy.spatial`: distances (`bw.scipy.spatial.distance`)."""

from bwcompiler.scipy.spatial import distance

__all__ = ["distance"]
