"""Records, metrics and logs of exchanges."""
