"""Checkpoints on a file system that other machines share: its files, and the lease that one driver has of them."""
