"""One archive of a pipeline, for machines without network, with a Dockerfile and Kubernetes manifests."""
