package holdfast.bench;

import holdfast.peer.Order;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/**
 * What is done before anything is measured. A process that is new goes through far more cycles, because a JVM interprets and
 * counts first, and compiles what it has seen often.
 */
final class Warming {
    private static final int THREADS = 4;

    private static boolean compiled;

    private final Session session;

    Warming(Session session) {
        this.session = session;
    }

    /** Has each thread go through some cycles on a lock of its own, so that connections are there and in use. */
    void run(Order order) throws InterruptedException {
        if (!compiled) {
            compiled = true;
            int each = (int) order.number("Compile") / THREADS;
            pass(THREADS, each, true);
            if (session.clients.single()) {
                pass(THREADS, each / 2, false); // those who wait take other ways
            }
        }
        pass(session.lockers.size(), (int) order.number("Cycles"), true);
    }

    private void pass(int size, int cycles, boolean own) throws InterruptedException {
        String name = "warm:" + session.number + ":" + Clock.now();
        AtomicReference<Exception> failed = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            Locker locker = session.clients.locker(own ? name + ":" + i : name);
            Thread thread = new Thread(() -> {
                try {
                    for (int n = 0; n < cycles; n++) {
                        locker.cycle();
                    }
                } catch (Exception e) {
                    failed.set(e);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (failed.get() != null) {
            throw new IllegalStateException("warming: " + failed.get(), failed.get());
        }
    }
}
