"""What is known of clients: XML clients, tool sets and the complaints they send back."""
