"""What tests share. Fixtures that need a server are in their own files and start it themselves."""

pytest_plugins = [
    "tests.postgres",
    "tests.http",
    "tests.command",
    "tests.site.fixture",
    "tests.marked",
    "tests.objects",
    "tests.scraping",
    "tests.serving",
]
