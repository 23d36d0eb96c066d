package holdfast.bench;

import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import holdfast.peer.Order;
import java.util.ArrayList;
import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** A contestant's Redisson client, or the clients of its RedLock, one for each node. All settings are Redisson's defaults. */
final class Clients {
    private final String contestant;
    private final long lease; // of a RedLock, in nanoseconds; the others have the watchdog
    private final List<RedissonClient> clients = new ArrayList<>();

    Clients(String contestant, Order setup) {
        this.contestant = contestant;
        this.lease = setup.number("Lease");
        for (String address : setup.texts("Addresses")) {
            Config config = new Config();
            config.useSingleServer().setAddress("redis://" + address);
            clients.add(Redisson.create(config));
        }
    }

    /** The lock of a name for one thread at a time. */
    @SuppressWarnings("deprecation") // Redisson advises against its RedLock, and has no other
    Locker locker(String name) {
        RedissonClient client = clients.get(0);
        return switch (contestant) {
            case "redisson" -> watched(client.getLock(name));
            case "redisson, fair" -> watched(client.getFairLock(name));
            case "redisson redlock" -> leased(
                    client.getRedLock(clients.stream().map(node -> node.getLock(name)).toArray(RLock[]::new)));
            default -> throw new IllegalArgumentException("there is no contestant " + contestant);
        };
    }

    // What can be interrupted waits as lock() does, and can be ended when nobody is left who would release the lock.

    private static Locker watched(RLock lock) {
        return new Locker(lock::lockInterruptibly, lock::unlock);
    }

    private Locker leased(RLock lock) {
        return new Locker(() -> lock.lockInterruptibly(lease, NANOSECONDS), lock::unlock);
    }

    /** Tells whether a lock is on one server, so that of those who want it at the same time somebody gets it. */
    boolean single() {
        return clients.size() == 1;
    }

    void close() {
        clients.forEach(client -> client.shutdown(0, 2, SECONDS));
    }
}
