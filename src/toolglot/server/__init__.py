"""The HTTP server and the connections to upstreams."""
