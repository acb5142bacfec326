package peer;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** Counts events; the clock starts with the first one. Threads of the topology share it. */
final class Meter {
    final CountDownLatch done = new CountDownLatch(1);
    private final AtomicLong seen = new AtomicLong();
    private final AtomicLong verdicts = new AtomicLong();
    private final long total;
    private volatile long started;
    private volatile long cpu;

    Meter(long total) {
        this.total = total;
    }

    void event() {
        if (started == 0) {
            started = System.nanoTime();
            cpu = processTime();
        }
        if (seen.incrementAndGet() == total) {
            done.countDown();
        }
    }

    void verdict() {
        verdicts.incrementAndGet();
    }

    /** One JSON line, once everything is durable. */
    void report() {
        double seconds = (System.nanoTime() - started) / 1e9;
        double used = (processTime() - cpu) / 1e9;
        System.out.printf(
                Locale.ROOT,
                "{\"events\": %d, \"verdicts\": %d, \"seconds\": %f, \"rate\": %f, \"cpu_per_100k\": %f}%n",
                seen.get(), verdicts.get(), seconds, seen.get() / seconds, used / seen.get() * 1e5);
    }

    private static long processTime() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
