"""Two-sample and independence tests."""
