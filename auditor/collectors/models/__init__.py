"""Models in this process, and their files, which are opened without running what strangers wrote."""
