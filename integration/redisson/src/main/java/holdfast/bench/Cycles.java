package holdfast.bench;

import holdfast.peer.Order;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Lock and unlock by one thread, again and again: cycles in uncontended.go, and quorum cycles in redlock.go. */
final class Cycles {
    private final Locker locker;

    Cycles(Session session) {
        locker = session.lockers.get(0);
    }

    /** How long each of n took. */
    Map<String, Object> run(int n) throws InterruptedException {
        List<Long> took = new ArrayList<>(n);
        for (int i = 0; i < n; i++) {
            took.add(one());
        }
        return Map.of("Took", took);
    }

    /** How long each took until the time was up. */
    Map<String, Object> onNodes(Order order) throws InterruptedException {
        List<Long> took = new ArrayList<>();
        long end = Clock.now() + order.number("For");
        do {
            took.add(one());
        } while (took.size() < order.number("Most") && Clock.now() < end);
        return Map.of("Took", took);
    }

    private long one() throws InterruptedException {
        long start = Clock.now();
        locker.cycle();
        return Clock.now() - start;
    }
}
