"""Codecs: read and write the arguments of a call, one notation per file."""
