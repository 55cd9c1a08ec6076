"""Endpoints that other systems call: Firecrawl's webhooks, changedetection.io's notifications."""
