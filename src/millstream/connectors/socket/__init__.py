"""Lines of text from a socket."""
