"""Dialects: ways of writing tool calls as text. Specifications, codecs and one record per dialect."""
