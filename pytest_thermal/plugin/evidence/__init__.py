"""What a run leaves for others to decide on: every test as it ended, the gate, OCP-diag, properties, node names."""
