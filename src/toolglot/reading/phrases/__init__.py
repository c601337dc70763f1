"""Phrases of narrated stops and requests, one module per language."""
