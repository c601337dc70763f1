"""What the tests share: a gateway on loopback, samples, scripted upstreams, generators."""
