"""Recovery: requests and turns that succeed although a call or a history is defective."""
