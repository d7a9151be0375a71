"""Feature maps phi with k(x, z) close to phi(x)^T phi(z), evaluated in chunks."""
