"""What every collector shares: records, tasks, outputs of models, and the scorer that turns them into losses."""
