"""One bounded run of the same spec over old data, and a comparison of the stream's tables with its answer."""
