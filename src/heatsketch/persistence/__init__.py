"""Model files: named arrays and a checked header, in the safetensors format."""

from heatsketch.persistence._parts import Part
from heatsketch.persistence._save import Saved, restored, saved_header

__all__ = ["Part", "Saved", "restored", "saved_header"]
