"""The access run as pytest sees it: its session, fixtures and last words."""
