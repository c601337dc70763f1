"""Asks a model again when its answer was defective, and keeps past turns acceptable to strict upstreams."""
