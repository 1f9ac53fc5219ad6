"""The HTTP server of the live page: authentication, routes, the stream of events."""
