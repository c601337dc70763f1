"""Places that answer."""
