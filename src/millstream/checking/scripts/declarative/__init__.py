"""Check projects of Spark Declarative Pipelines, flow by flow."""
