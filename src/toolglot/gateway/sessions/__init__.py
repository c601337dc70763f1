"""State kept between the requests of one client."""
