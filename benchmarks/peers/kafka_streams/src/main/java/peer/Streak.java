package peer;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessageUnpacker;
import org.msgpack.value.Value;
import org.msgpack.value.ValueFactory;

/** The streak work on Kafka Streams: RocksDB store with cache and changelog, at least once. */
public final class Streak {
    private static final String STORE = "streaks";

    /** Unpack, fold, pack: what a processor does for each record. */
    private static final class Step implements Processor<byte[], byte[], byte[], byte[]> {
        private final Meter meter;
        private ProcessorContext<byte[], byte[]> context;
        private KeyValueStore<byte[], byte[]> runs;

        Step(Meter meter) {
            this.meter = meter;
        }

        @Override
        public void init(ProcessorContext<byte[], byte[]> given) {
            context = given;
            runs = given.getStateStore(STORE);
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            Run run = Run.unpack(runs.get(record.key()));
            int streak = run.step(callOf(record.value()));
            runs.put(record.key(), run.pack());
            if (streak > 0) {
                byte[] text = Integer.toString(streak).getBytes(StandardCharsets.US_ASCII);
                context.forward(record.withValue(text));
                meter.verdict();
            }
            meter.event();
        }

        /** The call in a frame of one event: 8 bytes of {@code fp.documented.args}. */
        private static long callOf(byte[] value) {
            try (MessageUnpacker unpacker = MessagePack.newDefaultUnpacker(value)) {
                Value event = in(unpacker.unpackValue(), "events").asArrayValue().get(0);
                Value args = in(in(in(event, "fp"), "documented"), "args");
                return ByteBuffer.wrap(args.asRawValue().asByteArray()).getLong();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    private static Value in(Value map, String name) {
        return map.asMapValue().map().get(ValueFactory.newString(name));
    }

    private Streak() {
    }

    public static void main(String[] words) throws Exception {
        Arguments given = new Arguments(words);
        Meter meter = new Meter(given.number("--events"));
        Topology topology = new Topology();
        topology.addSource("events", given.text("--topic"));
        topology.addProcessor("step", () -> new Step(meter), "events");
        topology.addStateStore(
                Stores.keyValueStoreBuilder(
                        Stores.persistentKeyValueStore(STORE), Serdes.ByteArray(), Serdes.ByteArray())
                        .withCachingEnabled()
                        .withLoggingEnabled(Map.of()),
                "step");
        topology.addSink("verdicts", given.text("--out"), "step");
        KafkaStreams streams = new KafkaStreams(topology, settings(given));
        streams.start();
        meter.done.await();
        streams.close(); // commits, and waits for the producer
        meter.report();
    }

    private static Properties settings(Arguments given) throws IOException {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, given.text("--name"));
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given.text("--bootstrap"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("streams").toString());
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        settings.put("auto.offset.reset", "earliest");
        return settings;
    }
}
