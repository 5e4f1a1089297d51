"""The suites that sign off a bench; they read like the test plan."""
