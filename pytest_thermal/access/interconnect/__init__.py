"""What the interconnect probes look at: link states, fallbacks in force, and latency tests that others wrote."""
