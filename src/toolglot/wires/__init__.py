"""The JSON protocols, one room each."""
