"""The queues that bench-queue compares: each can be filled, and drained by one process."""
