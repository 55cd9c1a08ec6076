"""What tests share: fixtures (registered in conftest.py), servers to test against, builders of rows and files."""
