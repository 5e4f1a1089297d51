"""What many nodes brought back: each node, each temperature over all of them, each kind of place, the common start."""
