"""Selection of the landmark points on which low-rank approximations are built."""
