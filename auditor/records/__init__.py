"""Who a record is: labels, persons, features and their fingerprints."""
