"""What many models, or many runs, of one training algorithm say about the algorithm; and planning for it."""
