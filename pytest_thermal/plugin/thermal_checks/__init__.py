"""The thermal run as pytest sees it: asked for or not, made or replayed, its fixtures, live view and last words."""
