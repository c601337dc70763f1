"""What upstreams and models can do: profiles, workarounds, learned failures."""
