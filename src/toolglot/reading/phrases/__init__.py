"""Phrases before calls that are shown or doubtful."""
