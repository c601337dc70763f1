"""Recovery: turns succeed although a call is defective, and requests although their history is."""
