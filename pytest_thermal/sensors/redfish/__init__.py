"""A BMC, or a coolant distribution unit, that speaks Redfish: fans, pumps, coolant, leak detectors, power supplies."""
