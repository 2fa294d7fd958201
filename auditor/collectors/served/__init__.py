"""Family: models behind an address, and the protocols in which they are asked."""
