"""Sources that read what the kernel shows of this machine."""
