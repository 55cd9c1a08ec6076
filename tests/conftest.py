"""What tests share. Fixtures that need a server are in their own files and start it themselves."""

from hypothesis import HealthCheck, settings

# How long an example takes says something of the machine, not of the code.
settings.register_profile("trapline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trapline")

pytest_plugins = [
    "tests.postgres",
    "tests.http",
    "tests.command",
    "tests.site.fixture",
    "tests.logged",
    "tests.marked",
    "tests.objects",
    "tests.scraping",
    "tests.ingesting",
    "tests.serving",
]
