r"""Diffusion distances inside scanpy: tools that read and write AnnData.

.. math:: Y = \frac{1}{\sqrt{k}} B G, \qquad E |y_i - y_j|^2 = |B_i - B_j|^2, \qquad
          B = \mathrm{diag}(v)^{-1} f(A)

Here ``f`` is the sum over all diffusion times, or a power, and ``A`` is the heat operator of the
neighbour graph from ``scanpy.pp.neighbors``, or of any representation of the cells, with the
stationary direction ``v``. The
tools follow the conventions of ``scanpy.tl``::

    import heatsketch.scanpy as hs

    sc.pp.neighbors(adata)
    hs.tl.heatsketch(adata)                     # adata.obsm["X_heatsketch"]
    sc.pl.embedding(adata, "heatsketch_map")    # adata.obsm["X_heatsketch_map"]
    hs.tl.heat_pseudotime(adata, "cell 17")     # adata.obs["heat_pseudotime"], with its interval
    hs.tl.heat_clusters(adata, 10)              # adata.obs["heat_clusters"]
    hs.tl.drift(adata, before)                  # adata.obs["drift"], for one power
    hs.tl.compare(adata, "condition", units="donor")    # adata.obs["compare_flagged"], where
    hs.pp.heat_smooth(adata)                    # adata.layers["heat_smooth"], with less noise
    hs.tl.fate(adata, "terminal_state")         # adata.obsm["fate"], probabilities of fates
    hs.tl.heat_labels(adata, "known_type")      # adata.obs["heat_labels"], from a few labels

The random numbers of a cell depend on the seed and on its name in ``obs_names``. So two AnnData
objects with matching names can be compared, even if cells were added or removed.

``anndata`` is imported only when a tool is called or a file is read.
"""

from heatsketch.scanpy import pp, tl

__all__ = ["pp", "tl"]
