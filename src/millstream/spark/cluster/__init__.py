"""A cluster that runs the executors of a session: its master, the code that it gets, and what its workers lack."""
