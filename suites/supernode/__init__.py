"""The access gate: from outside in, whether a gateway and what stands behind it can be used."""
