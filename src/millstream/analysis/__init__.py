"""Static analysis of a pipeline: the rules, each with its page, and the delivery guarantees."""
