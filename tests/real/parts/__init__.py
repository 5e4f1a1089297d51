"""Real servers for the access suite to be run against: each module starts one kind and stops it again."""
