"""Our own API under /api, plus /health and /metrics."""
