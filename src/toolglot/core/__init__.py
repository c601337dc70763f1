"""Protocol-neutral types and helpers: conversations, events, errors, options, schemas, lenient JSON."""
