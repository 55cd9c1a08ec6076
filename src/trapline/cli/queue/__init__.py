"""Commands for the queue: jobs, tasks, schedules, webhooks, workers."""
