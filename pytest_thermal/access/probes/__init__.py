"""The probes: one module a group of layers, each probe a function from a gateway to a verdict."""
