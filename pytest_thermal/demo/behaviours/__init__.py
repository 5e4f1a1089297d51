"""How the gateway behaves under each fault; one module per group of layers."""
