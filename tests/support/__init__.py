"""Helpers that several test modules share, in folders by subject. They import as `support`: `tests` is on the path."""
