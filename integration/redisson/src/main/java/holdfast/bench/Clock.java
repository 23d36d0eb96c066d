package holdfast.bench;

import java.util.concurrent.locks.LockSupport;

/** The machine's monotonic clock, which System.nanoTime reads on Linux: other processes read the same. */
final class Clock {
    private Clock() {}

    static long now() {
        return System.nanoTime();
    }

    /** Returns when so many nanoseconds have passed, or when the thread is interrupted. */
    static void sleep(long duration) {
        sleepUntil(now() + duration);
    }

    /** Returns when the clock shows at, or when the thread is interrupted. */
    static void sleepUntil(long at) {
        for (long left = at - now(); left > 0 && !Thread.currentThread().isInterrupted(); left = at - now()) {
            LockSupport.parkNanos(left);
        }
    }
}
