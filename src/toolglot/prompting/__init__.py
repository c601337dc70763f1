"""Prompts for models that write tool calls as text: tools, past calls and results rendered in a dialect."""
