"""The engine without Kafka: what a step costs, and what a run takes."""
