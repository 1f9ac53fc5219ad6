"""Java, jars, and the Spark session: how a JVM is found, started, set up and measured."""
