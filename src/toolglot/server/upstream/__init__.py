"""Connections to upstreams: pool, discovery, probe and the embedded model."""
