"""Conversations rendered as text for models that take tool calls in a dialect."""
