"""Choose where a command's Spark runs, on a cluster or on this machine, and how it reaches S3."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.spark import internals
from millstream.spark.settings import S3_CLIENT, is_local, protect_secrets
from millstream.spec.location import S3_SETTINGS

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.spec_file import LoadedSpec

_MASTER = "spark.master"

# Settings that only a cluster's driver may have, because their values fit executors of the cluster.
_OF_CLUSTERS = (_MASTER, "spark.authenticate", "spark.executor.", "spark.cores.max")


def use_cluster(loaded: LoadedSpec, master: str | None = None) -> LoadedSpec:
    """Return the spec with this master instead of its own, and with what the local stack's cluster asks of a driver.

    Settings of the spec take precedence over those of the stack.
    """
    # Imported here because most specs name no cluster.
    from millstream.devstack.stack import cluster_settings

    pipeline = loaded.pipeline
    if pipeline is None:
        return loaded
    own = {**pipeline.spark, **({_MASTER: master} if master else {})}
    if is_local(str(own.get(_MASTER, "local"))):
        settings = own
    else:
        settings = {**cluster_settings(pipeline.folder, str(own[_MASTER])), **own}
    return replace(loaded, pipeline=pipeline.model_copy(update={"spark": settings}))


def use_buckets(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with the settings of the S3 client, if it uses S3, and those of the local stack's bucket.

    Settings of spark-submit take precedence over these, and those of the spec over both. Their keys and secrets are
    redacted from then on.
    """
    # Imported here because most specs do not use S3.
    from millstream.connectors.api.values.bucket_options import set_bucket_settings
    from millstream.devstack.stack import bucket_settings
    from millstream.pipeline.buckets import uses_s3

    if not uses_s3(pipeline):
        return pipeline
    submitted = internals.submitted_conf() if internals.is_submitted() else {}
    of_client = {key: value for key, value in submitted.items() if key.startswith(S3_SETTINGS)}
    settings = {**S3_CLIENT, **bucket_settings(pipeline.folder), **of_client, **pipeline.spark}
    protect_secrets(settings)
    set_bucket_settings(settings)
    return pipeline.model_copy(update={"spark": settings})


def settings_without_cluster(pipeline: Pipeline) -> dict[str, str | int | float | bool]:
    """Return the spec's Spark settings for a command that reads a little on this machine.

    On a cluster it would wait for cores as long as a run has them all.
    """
    if is_local(str(pipeline.spark.get(_MASTER, "local"))):
        return dict(pipeline.spark)
    return {key: value for key, value in pipeline.spark.items() if not key.startswith(_OF_CLUSTERS)}
