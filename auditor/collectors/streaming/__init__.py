"""Long collections: in constant memory, part by part, so that a killed one goes on where it stopped."""
