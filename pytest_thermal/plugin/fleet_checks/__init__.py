"""The fleet: runs of many nodes, judged side by side."""
