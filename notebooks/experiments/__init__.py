"""What the notebooks train and on what data: loaders, training loops and grids that run in worker processes."""
