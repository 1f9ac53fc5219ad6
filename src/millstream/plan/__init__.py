"""What a changed pipeline means for each checkpoint that exists. The room waits; see docs/house.md."""
