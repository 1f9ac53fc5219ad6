"""Write tests: record a source, update expectations in their file."""
