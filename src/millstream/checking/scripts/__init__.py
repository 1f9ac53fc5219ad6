"""Check PySpark scripts and declarative-pipelines projects that do not use Millstream."""
