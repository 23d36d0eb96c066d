package holdfast.bench;

import static java.util.concurrent.TimeUnit.NANOSECONDS;

import holdfast.peer.Order;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Threads that take and release locks as fast as they can: the task run in load.go, with a thread for each goroutine. */
final class Load {
    private static final long GRACE = 2_000_000_000;

    private final Session session;
    private final Order order;
    private final List<Runner> runners = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();

    Load(Session session, Order order) {
        this.session = session;
        this.order = order;
    }

    Map<String, Object> run() throws InterruptedException {
        int n = session.lockers.size();
        for (int i = 0; i < n; i++) {
            int lock = session.number < 0 ? i : 0;
            Runner runner = new Runner(session.lockers.get(i), session.shared, lock, session.number * n + i + 1, order);
            runners.add(runner);
            threads.add(new Thread(runner, "runner " + i));
        }
        threads.forEach(Thread::start);
        boolean stuck = stuck();
        if (stuck) {
            session.close();
            // Who waits for a message asks again when it is interrupted, of a client that is closed.
            while (!joined(Clock.now() + 10_000_000)) {
                threads.forEach(Thread::interrupt);
            }
        }
        return answer(stuck);
    }

    /** Waits for all threads, and tells whether somebody still waits when for long nobody, in any process, has had the lock. */
    private boolean stuck() throws InterruptedException {
        long before = -1;
        long now = session.shared.get(0);
        // With 64 processes it takes seconds until each has had the lock once more.
        for (long end = order.number("Until") + GRACE; now != before; end = Clock.now() + GRACE) {
            if (joined(end)) {
                return false;
            }
            before = now;
            now = session.shared.get(0);
        }
        return true;
    }

    /** Waits for all threads until the clock shows end, and tells whether they have ended. */
    private boolean joined(long end) throws InterruptedException {
        for (Thread thread : threads) {
            NANOSECONDS.timedJoin(thread, Math.max(end - Clock.now(), 1));
            if (thread.isAlive()) {
                return false;
            }
        }
        return true;
    }

    private Map<String, Object> answer(boolean stuck) {
        Histogram waits = new Histogram();
        Histogram cycles = new Histogram();
        runners.forEach(runner -> {
            waits.add(runner.waits);
            cycles.add(runner.cycles);
        });
        Map<String, Object> ran = new LinkedHashMap<>();
        ran.put("acquired", runners.stream().map(runner -> runner.acquired).toList());
        ran.put("total", runners.stream().mapToLong(runner -> runner.total).sum());
        ran.put("waits", waits.bars());
        ran.put("cycles", cycles.bars());
        ran.put("stuck", stuck);
        ran.put("violations", runners.stream().mapToLong(runner -> runner.violations).sum());
        ran.put("errors", runners.stream().map(runner -> runner.error).filter(error -> error != null).toList());
        return ran;
    }
}
