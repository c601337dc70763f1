"""Support for known clients: XML clients, editing tool sets, and the complaints that clients send back."""
