"""Family: tables of records to score, read a stretch at a time."""
