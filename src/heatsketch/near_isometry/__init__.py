"""Linear maps that distort the distances between points as little as possible.

They need coordinates only, and no heat kernel.
"""

from heatsketch.near_isometry._distortion import (
    Distortion,
    DistortionMap,
    certified_distortion,
    least_distortion_map,
)
from heatsketch.near_isometry._estimator import NearIsometry

__all__ = [
    "Distortion",
    "DistortionMap",
    "NearIsometry",
    "certified_distortion",
    "least_distortion_map",
]
