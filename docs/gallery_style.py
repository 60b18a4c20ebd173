"""The look of the pictures of the gallery."""


def apply(gallery_conf, name):
    """Use our style for the next example; sphinx-gallery has just restored matplotlib's own."""
    from matplotlib import pyplot as plt

    plt.style.use("heatsketch.plot.heatsketch")
