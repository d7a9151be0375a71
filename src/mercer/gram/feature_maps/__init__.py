"""Feature maps phi such that phi(x)^T phi(z) approximates a kernel k(x, z)."""
