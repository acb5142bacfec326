"""The limit: a bare confluent-kafka loop, nothing durable."""

from __future__ import annotations

from types import SimpleNamespace

from confluent_kafka import Consumer, Message, Producer

from benchmarks.peers.report import Meter, arguments
from benchmarks.peers.works import EngineFold, StreakFold


def take(consumer: Consumer) -> list[Message]:
    """What is there, as soon as there is any: `consume` alone would wait for 500."""
    first = consumer.poll(0.5)
    return [] if first is None else [first, *consumer.consume(499, 0)]


def main() -> None:
    """Consume, fold, produce verdicts."""
    given = arguments()
    meter = Meter(given.events)
    make = StreakFold if given.work == "streak" else EngineFold
    folds = {number: make(number, given.partitions) for number in range(given.partitions)}
    producer = Producer({"bootstrap.servers": given.bootstrap, "linger.ms": 5})
    consumer = Consumer(
        {
            "bootstrap.servers": given.bootstrap,
            "group.id": given.name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([given.topic])
    done = False
    while not done:
        messages = take(consumer)
        if messages:
            meter.start()
        events = 0
        for message in messages:
            record = SimpleNamespace(
                offset=message.offset(),
                timestamp=message.timestamp()[1],
                key=message.key(),
                value=message.value(),
                headers=(),
            )
            events += folds[message.partition()].apply(record)
        for fold in folds.values():
            for key, value in fold.take_verdicts():
                producer.produce(given.out, value, key)
                meter.verdicts += 1
        producer.poll(0)
        done = meter.add(events)
    producer.flush()
    meter.stop()
    meter.report()
    consumer.close()


if __name__ == "__main__":
    main()
