"""The loops that numba compiles, and the only folder that imports numba.

Its files are imported when a loop is first needed, never by ``import heatsketch``.

Only additions, multiplications, divisions, square roots and fused multiply-adds of IEEE numbers
appear here, without ``fastmath``: each is rounded in one prescribed way, so that every machine
computes the same bits, and no sum depends on how the work is cut or on the number of threads.
"""

__all__: list[str] = []
