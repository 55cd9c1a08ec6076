"""Endpoints for jobs: create, status, events, logs, exports, schedules."""
