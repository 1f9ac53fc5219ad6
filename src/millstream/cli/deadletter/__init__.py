"""The command `deadletter`, and the formats of a dead letter."""
