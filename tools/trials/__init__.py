"""Examples run against a local stack, and what they made held against their expected.yml."""
