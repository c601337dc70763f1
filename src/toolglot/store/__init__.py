"""Persistence: sessions, records, kept values, learned failures, rollout settings and client keys."""
