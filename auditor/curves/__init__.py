"""Losses become a trade-off curve: transforms, fitted densities, counts at every threshold."""
