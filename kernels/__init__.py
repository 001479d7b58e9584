"""Kernel backends, tried in order; the first that can run is taken."""
