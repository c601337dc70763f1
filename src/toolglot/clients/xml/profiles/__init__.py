"""One file for each client that reads tool calls in XML; found by walking the folder."""
