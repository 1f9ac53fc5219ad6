"""The process that owns the local servers, and the folder with its state."""
