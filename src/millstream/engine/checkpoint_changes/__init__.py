"""A checkpoint replaced by a fresh one, repartitioned, or found under a former name."""
