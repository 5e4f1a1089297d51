"""Sensors that a Prometheus server knows: exporters by their metrics' names, and any PromQL that the bench names."""
