"""What the package offers to its users, for tests that go through all of it."""
