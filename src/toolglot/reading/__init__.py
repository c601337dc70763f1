"""The streaming parser that finds tool calls in the text of a model."""
