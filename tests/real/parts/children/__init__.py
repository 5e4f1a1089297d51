"""Programs that run in a process, and often a virtual environment, of their own."""
