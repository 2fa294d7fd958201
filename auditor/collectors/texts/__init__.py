"""Losses of texts from causal language models, near or served."""
