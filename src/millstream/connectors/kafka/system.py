"""Facts about Kafka that the rest of the package reads through the registry."""

from __future__ import annotations

from millstream.connectors.api.system import System

KAFKA = System(
    failpoints={
        "kafka.before": "its records are computed, and none is sent",
        "kafka.sent": "its records are sent, and the transaction is not committed",
        "kafka.committed": "the transaction is committed, and the run has no confirmation yet",
    },
    undecided="kafka.sent",
    outages=(
        r"org\.apache\.kafka\.common\.errors\.(?:TimeoutException|DisconnectException|NetworkException"
        r"|NotLeaderOrFollowerException|LeaderNotAvailableException|CoordinatorNotAvailableException"
        r"|CoordinatorLoadInProgressException|NotCoordinatorException|NotEnoughReplicas\w*"
        r"|BrokerNotAvailableException|KafkaStorageException|UnknownTopicOrPartitionException)",
    ),
    data_losses=("KAFKA_DATA_LOSS", "OffsetOutOfRangeException"),
)
