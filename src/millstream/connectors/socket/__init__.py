"""Socket source: lines of text from a TCP server."""
