"""The stages of a fit, for asv: ``make stages BASE=main`` compares two commits."""
