package holdfast.peer;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.io.IOException;
import org.redisson.api.RLock;

/** One thing that a thread is told to do with a lock. A lease of 0 is the watchdog's, a wait of 0 is none. */
record Operation(Clients clients, Order order) {
    /** Does it, and returns what the answer says. */
    Object run() throws InterruptedException, IOException {
        return switch (order.text("op")) {
            case "open" -> clients.open(order);
            case "yaml" -> clients.yaml(order);
            case "close" -> {
                clients.close(order.text("client"));
                yield null;
            }
            case "lock" -> lock();
            case "tryLock" -> lockOf().tryLock(order.number("wait"), lease(), MILLISECONDS);
            case "unlock" -> {
                lockOf().unlock();
                yield null;
            }
            case "forceUnlock" -> lockOf().forceUnlock();
            case "isLocked" -> lockOf().isLocked();
            case "isHeldByCurrentThread" -> lockOf().isHeldByCurrentThread();
            case "holdCount" -> lockOf().getHoldCount();
            case "ttl" -> lockOf().remainTimeToLive();
            case "lockAndGetToken" -> Release.lockAndGetToken(lockOf(), lease());
            case "tryLockAndGetToken" -> Release.tryLockAndGetToken(lockOf(), order.number("wait"), lease());
            case "soak" -> new Soak(clients, order).run();
            default -> throw new IllegalArgumentException("no operation " + order.text("op"));
        };
    }

    private Object lock() {
        if (order.number("lease") == 0) {
            lockOf().lock();
        } else {
            lockOf().lock(order.number("lease"), MILLISECONDS);
        }
        return null;
    }

    private RLock lockOf() {
        return clients.lock(order);
    }

    private long lease() {
        return order.number("lease") == 0 ? -1 : order.number("lease");
    }
}
