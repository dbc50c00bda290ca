"""Hyperslab beside its peers: every figure of the project is made here (see ../README.md)."""
