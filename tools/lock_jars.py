"""Write src/millstream/spark/jars/jars.lock again: fetch each jar once and note its size and sha256.

Run it after changing a version below. The list of the broker is what Maven gives for
`org.apache.kafka:kafka_2.13` at run time (`mvn dependency:list -DincludeScope=runtime`), with a
logger added; nothing here resolves dependencies, so that what is fetched is what was read and locked.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from millstream.spark.jars import ivy_download
from millstream.spark.jars.jar_cache import LOCK, digest

DELTA = "4.4.0"
SPARK = "4.2.0"
BROKER = "4.1.1"
HADOOP = "3.5.0"
JACKSON = "2.19.0"
LOG4J = "2.24.3"
AWS_SDK = "2.35.4"
JCLOUDS = "2.7.0"
S3_PROXY = "3.1.0"

GROUPS = {
    "spark": [
        # Hadoop's local file system without a process for each file; compiled against any Hadoop 3.
        "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0",
        *(f"io.delta:delta-kernel-{part}:{DELTA}" for part in ("api", "defaults", "unitycatalog")),
        f"io.delta:delta-spark_4.2_2.13:{DELTA}",
        f"io.delta:delta-storage:{DELTA}",
        "org.apache.commons:commons-pool2:2.13.1",
        "org.apache.kafka:kafka-clients:3.9.2",
        # Maven Central has none of 4.2. What it needs of Spark lies in spark-sql itself since 4.0.
        "org.apache.spark:spark-avro_2.13:4.1.1",
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}",
        # Maven Central has no later one; it reads and writes beside Spark 4.2.
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.postgresql:postgresql:42.7.14",
    ],
    "broker": [
        *(
            f"org.apache.kafka:{part}:{BROKER}"
            for part in (
                "kafka-clients", "kafka-coordinator-common", "kafka-group-coordinator",
                "kafka-group-coordinator-api", "kafka-metadata", "kafka-raft", "kafka-server",
                "kafka-server-common", "kafka-share-coordinator", "kafka-storage", "kafka-storage-api",
                "kafka-tools-api", "kafka-transaction-coordinator", "kafka_2.13",
            )
        ),
        f"com.fasterxml.jackson.core:jackson-annotations:{JACKSON}",
        f"com.fasterxml.jackson.core:jackson-core:{JACKSON}",
        f"com.fasterxml.jackson.core:jackson-databind:{JACKSON}",
        f"com.fasterxml.jackson.dataformat:jackson-dataformat-csv:{JACKSON}",
        f"com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:{JACKSON}",
        f"com.fasterxml.jackson.datatype:jackson-datatype-jdk8:{JACKSON}",
        *(f"org.apache.logging.log4j:log4j-{part}:{LOG4J}" for part in ("api", "core", "slf4j-impl")),
        "com.dynatrace.hash4j:hash4j:0.22.0",
        "com.github.ben-manes.caffeine:caffeine:3.2.0",
        "com.github.luben:zstd-jni:1.5.6-10",
        "com.google.re2j:re2j:1.8",
        "com.typesafe.scala-logging:scala-logging_2.13:3.9.5",
        "com.yammer.metrics:metrics-core:2.2.0",
        "commons-beanutils:commons-beanutils:1.9.4",
        "commons-collections:commons-collections:3.2.2",
        "commons-digester:commons-digester:2.1",
        "commons-logging:commons-logging:1.3.2",
        "commons-validator:commons-validator:1.9.0",
        "net.sf.jopt-simple:jopt-simple:5.0.4",
        "net.sourceforge.argparse4j:argparse4j:0.7.0",
        "org.bitbucket.b_c:jose4j:0.9.6",
        "org.hdrhistogram:HdrHistogram:2.2.2",
        "org.jspecify:jspecify:1.0.0",
        "org.lz4:lz4-java:1.8.0",
        "org.pcollections:pcollections:4.0.2",
        "org.scala-lang:scala-library:2.13.16",
        "org.scala-lang:scala-reflect:2.13.16",
        "org.slf4j:slf4j-api:1.7.36",
        "org.xerial.snappy:snappy-java:1.1.10.7",
        "org.yaml:snakeyaml:2.4",
    ],
    # The servers of 'millstream up --hdfs', in the version of the client that PySpark has.
    "hdfs": [f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP}"],
    # The client of s3a://, with the version of Amazon's SDK that Hadoop was built with. Its bundle has all services
    # of Amazon and is 600 MB; this is S3 with what it needs, and the token service for roles. PySpark has the rest.
    "s3": [
        f"org.apache.hadoop:hadoop-aws:{HADOOP}",
        *(
            f"software.amazon.awssdk:{part}:{AWS_SDK}"
            for part in (
                "annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol",
                "aws-xml-protocol", "checksums", "checksums-spi", "crt-core", "endpoints-spi", "http-auth",
                "http-auth-aws", "http-auth-aws-eventstream", "http-auth-spi", "http-client-spi", "identity-spi",
                "json-utils", "metrics-spi", "netty-nio-client", "profiles", "protocol-core", "regions", "retries",
                "retries-spi", "s3", "s3-transfer-manager", "sdk-core", "sts", "third-party-jackson-core", "utils",
                "utils-lite",
            )
        ),
        "org.reactivestreams:reactive-streams:1.0.4",
        "software.amazon.eventstream:eventstream:1.0.1",
        # Hadoop's auditor of requests loads its classes, whatever stream is chosen.
        "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    ],
    # The server of 'millstream up --s3'. jclouds loads the classes of all its stores at the start.
    "s3-server": [
        f"org.gaul:s3proxy:{S3_PROXY}",
        "aopalliance:aopalliance:1.0",
        "args4j:args4j:2.37",
        "ch.qos.logback:logback-classic:1.5.32",
        "ch.qos.logback:logback-core:1.5.32",
        "com.fasterxml.jackson.core:jackson-annotations:2.21",
        "com.fasterxml.jackson.core:jackson-core:2.21.2",
        "com.fasterxml.jackson.core:jackson-databind:2.21.2",
        "com.fasterxml.jackson.dataformat:jackson-dataformat-xml:2.21.2",
        "com.fasterxml.woodstox:woodstox-core:7.0.0",
        "com.google.code.gson:gson:2.12.1",
        "com.google.guava:failureaccess:1.0.3",
        "com.google.guava:guava:33.5.0-jre",
        "com.google.inject.extensions:guice-assistedinject:7.0.0",
        "com.google.inject:guice:7.0.0",
        "jakarta.annotation:jakarta.annotation-api:2.0.0",
        "jakarta.inject:jakarta.inject-api:2.0.1",
        "jakarta.servlet:jakarta.servlet-api:6.0.0",
        # Without it a read whose condition fails is answered by 500 instead of 412.
        "jakarta.ws.rs:jakarta.ws.rs-api:3.1.0",
        "jakarta.xml.bind:jakarta.xml.bind-api:4.0.2",
        *(
            f"org.apache.jclouds.api:{part}:{JCLOUDS}"
            for part in (
                "filesystem", "oauth", "openstack-keystone", "openstack-swift", "rackspace-cloudfiles",
                "rackspace-cloudidentity", "s3", "sts",
            )
        ),
        *(
            f"org.apache.jclouds.provider:{part}:{JCLOUDS}"
            for part in (
                "aws-s3", "azureblob", "b2", "google-cloud-storage", "rackspace-cloudfiles-uk",
                "rackspace-cloudfiles-us",
            )
        ),
        f"org.apache.jclouds.common:googlecloud:{JCLOUDS}",
        f"org.apache.jclouds.driver:jclouds-slf4j:{JCLOUDS}",
        f"org.apache.jclouds:jclouds-blobstore:{JCLOUDS}",
        f"org.apache.jclouds:jclouds-core:{JCLOUDS}",
        "org.codehaus.woodstox:stax2-api:4.2.2",
        "org.slf4j:slf4j-api:2.0.17",
    ],
}  # fmt: skip

HEAD = """\
# Written by tools/lock_jars.py; change versions there. Coordinates, then size in bytes and sha256.
"""


def lock() -> str:
    """The lock's text, from jars fetched at this moment."""
    parts = [HEAD]
    for group, coordinates in GROUPS.items():
        expected = sorted(coordinates)
        with (
            tempfile.TemporaryDirectory() as folder,
            ivy_download.download_jars(expected, Path(folder), 0, print) as jars,
        ):
            parts.append(f"\n[{group}]\n")
            for at in expected:
                _, name, version = at.split(":")
                jar = jars / f"{name}-{version}.jar"
                parts.append(f'"{at}" = {{ size = {jar.stat().st_size}, sha256 = "{digest(jar)}" }}\n')
    return "".join(parts)


if __name__ == "__main__":
    LOCK.write_text(lock())
