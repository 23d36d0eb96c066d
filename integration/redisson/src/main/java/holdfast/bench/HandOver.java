package holdfast.bench;

import holdfast.peer.Order;
import java.util.ArrayList;
import java.util.List;

/** Holder and waiter of handover.go, which says what the words are for. */
final class HandOver {
    private static final int HELD = 0;
    private static final int WAITING = 8;
    private static final int SENT = 16;
    private static final int DONE = 24;
    private static final int RELEASED = 32;
    private static final int STOP = 40;

    private static final long SETTLE = 3_000_000;

    private final Locker locker;
    private final Shared shared;

    HandOver(Session session) {
        locker = session.lockers.get(0);
        shared = session.shared;
    }

    void hold(Order order) throws InterruptedException {
        try {
            for (long i = 1; i <= order.number("Most") && Clock.now() < order.number("Until"); i++) {
                locker.lock();
                shared.set(HELD, i);
                if (!await(WAITING, i)) {
                    throw new IllegalStateException("the waiter has failed");
                }
                Clock.sleep(SETTLE + i % 8 * 250_000);
                shared.set(SENT, Clock.now());
                shared.set(RELEASED, i);
                locker.unlock();
                if (!await(DONE, i)) {
                    throw new IllegalStateException("the waiter has failed");
                }
            }
        } finally {
            shared.set(STOP, 1);
        }
    }

    /** How long each took from the holder's call of unlock. */
    List<Long> waitFor() throws InterruptedException {
        List<Long> took = new ArrayList<>();
        try {
            for (long i = 1; await(HELD, i); i++) {
                shared.set(WAITING, i);
                locker.lock();
                long got = Clock.now();
                if (shared.get(RELEASED) < i) {
                    // The benchmark knows these words.
                    throw new IllegalStateException("the waiter got the lock before the holder released it");
                }
                took.add(got - shared.get(SENT));
                locker.unlock();
                shared.set(DONE, i);
            }
        } catch (InterruptedException | RuntimeException e) {
            shared.set(STOP, 1);
            throw e;
        }
        return took;
    }

    /** Blocks until a word has reached n; false says that the time is up. */
    private boolean await(int word, long n) {
        while (shared.get(word) < n) {
            if (shared.get(STOP) != 0) {
                return false;
            }
            Clock.sleep(100_000);
        }
        return true;
    }
}
