"""JSON Schema for tool arguments: types, compilation, coercion of values, tool sets."""
