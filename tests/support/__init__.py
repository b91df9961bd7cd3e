"""Helpers that several test modules share, in folders by subject. Import them as `support`: `tests` is on the path."""
