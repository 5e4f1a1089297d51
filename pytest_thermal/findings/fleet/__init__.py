"""What comes back from many nodes, judged: each node, each card against all, each place, each node against its past."""
