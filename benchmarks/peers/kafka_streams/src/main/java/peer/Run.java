package peer;

import java.nio.ByteBuffer;

/** A run's state: streak, number of calls kept, and the last 30 of them, 8 bytes each. */
final class Run {
    static final int KEPT = 30;
    static final int EVERY = 10;

    private int streak;
    private int count;
    private final long[] calls = new long[KEPT];

    static Run unpack(byte[] row) {
        Run run = new Run();
        if (row != null) {
            ByteBuffer buffer = ByteBuffer.wrap(row);
            run.streak = buffer.getInt();
            run.count = buffer.get();
            for (int at = 0; at < run.count; at++) {
                run.calls[at] = buffer.getLong();
            }
        }
        return run;
    }

    byte[] pack() {
        ByteBuffer buffer = ByteBuffer.allocate(5 + 8 * count);
        buffer.putInt(streak).put((byte) count);
        for (int at = 0; at < count; at++) {
            buffer.putLong(calls[at]);
        }
        return buffer.array();
    }

    /** The streak, if it is worth a verdict, else 0. */
    int step(long call) {
        streak = count > 0 && calls[count - 1] == call ? streak + 1 : 1;
        if (count == KEPT) {
            System.arraycopy(calls, 1, calls, 0, KEPT - 1);
            calls[KEPT - 1] = call;
        } else {
            calls[count++] = call;
        }
        return streak % EVERY == 0 ? streak : 0;
    }
}
