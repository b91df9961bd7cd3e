"""Public names of the package, for tests that go through all of them."""
