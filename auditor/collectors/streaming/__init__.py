"""Long collections: any number of records in constant memory, and no work lost when they are stopped."""
