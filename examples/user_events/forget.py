"""Delete the oldest records of a topic, as its retention would: `python forget.py TOPIC SHARE`.

The brokers are those of KAFKA; `millstream up --detach` prints them.
"""

import os
import sys

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient


def main() -> None:
    """Delete so much of each partition, from its oldest record on."""
    topic, share = sys.argv[1], float(sys.argv[2])
    brokers = {"bootstrap.servers": os.environ["KAFKA"]}
    admin, reader = AdminClient(brokers), Consumer({**brokers, "group.id": "forget"})
    for number in admin.list_topics(topic, 10).topics[topic].partitions:
        oldest, newest = reader.get_watermark_offsets(TopicPartition(topic, number), 10)
        before = oldest + int(share * (newest - oldest))
        for deleted in admin.delete_records([TopicPartition(topic, number, before)]).values():
            deleted.result(10)
        sys.stdout.write(f"partition {number}: {oldest} to {before - 1} are gone, {newest} is next\n")
    reader.close()


if __name__ == "__main__":
    main()
