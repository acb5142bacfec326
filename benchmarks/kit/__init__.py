"""What all benchmarks share: statistics, the one result shape, Kafka, processes, load."""
