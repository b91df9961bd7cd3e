"""Check of a whole dataset, and its repair: what is damaged, what can be rebuilt, and what is moved away."""
