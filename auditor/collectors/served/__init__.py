"""Models that are served over HTTP, whatever protocol they speak."""
