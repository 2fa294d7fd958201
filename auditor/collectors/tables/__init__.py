"""Tables: columns of losses, and records to score, from files and from memory."""
