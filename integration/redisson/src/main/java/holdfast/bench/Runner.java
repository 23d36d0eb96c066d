package holdfast.bench;

import holdfast.peer.Order;

/** One thread of a load: runner in load.go. */
final class Runner implements Runnable {
    final Histogram waits = new Histogram();
    final Histogram cycles = new Histogram();
    int acquired; // within the time that counts
    int total;
    int violations;
    String error; // the first; null if there was none

    private final Locker locker;
    private final Shared shared;
    private final int count; // words that the lock guards, and nothing else
    private final int holder;
    private final long id;
    private final long start;
    private final long from;
    private final long until;
    private final long hold;

    Runner(Locker locker, Shared shared, int lock, long id, Order order) {
        this.locker = locker;
        this.shared = shared;
        this.count = 16 * lock;
        this.holder = 16 * lock + 8;
        this.id = id;
        this.start = order.number("Start");
        this.from = order.number("From");
        this.until = order.number("Until");
        this.hold = order.number("Hold");
    }

    @Override
    public void run() {
        Clock.sleepUntil(start);
        for (long asked = Clock.now(); asked < until; asked = Clock.now()) {
            if (!lock()) {
                waits.record(until - Math.max(asked, from));
                return;
            }
            long got = Clock.now();
            inside();
            unlock();
            long done = Clock.now();
            total++;
            if (got >= from && got < until) {
                acquired++;
                cycles.record(done - asked);
                waits.record(got - asked);
            } else if (got >= until && asked >= from) {
                waits.record(until - asked); // it had waited for so long when time was up
            }
        }
    }

    /** Tries until it has the lock, or fails when the time is up. */
    private boolean lock() {
        while (true) {
            try {
                locker.lock();
                return true;
            } catch (Exception e) {
                failed(e);
                Clock.sleep(1_000_000);
            }
            if (Clock.now() >= until) {
                return false;
            }
        }
    }

    private void unlock() {
        try {
            locker.unlock();
        } catch (RuntimeException e) {
            failed(e);
        }
    }

    private void failed(Exception e) {
        if (error == null) {
            error = e.toString();
        }
    }

    /** If two are here at the same time, an update of count is lost, or one finds the other. */
    private void inside() {
        if (shared.plain(holder) != 0) {
            violations++;
        }
        shared.setPlain(holder, id);
        long seen = shared.plain(count);
        if (hold > 0) {
            Clock.sleep(hold);
        }
        shared.setPlain(count, seen + 1);
        if (shared.plain(holder) != id) {
            violations++;
        }
        shared.setPlain(holder, 0);
    }
}
