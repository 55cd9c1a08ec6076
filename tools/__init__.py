"""What a developer runs and no user needs."""
