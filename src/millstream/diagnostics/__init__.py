"""What a finding is, where it points, and how it is printed. Knows nothing of pipelines or Spark."""
