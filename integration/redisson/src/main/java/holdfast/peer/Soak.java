package holdfast.peer;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.NANOSECONDS;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.client.RedisTimeoutException;
import org.redisson.client.codec.StringCodec;

/**
 * Takes locks at random, in several threads, for some time. In each section it reads the counters that the lock protects and
 * writes them plus one, in two commands; under a read lock it reads them twice. soak_test.go does the same in Go.
 */
final class Soak {
    private static final int LEASE = 60_000; // longer than the run

    private final Clients clients;
    private final Order order;
    private final List<Order> locks;
    private final Map<String, Long> sections = new ConcurrentHashMap<>();
    private final Map<String, Long> increments = new ConcurrentHashMap<>();
    private final Map<String, Long> errors = new ConcurrentHashMap<>();

    Soak(Clients clients, Order order) {
        this.clients = clients;
        this.order = order;
        this.locks = order.orders("locks");
    }

    /** How many sections there were by kind, how many increments by counter, and which errors. */
    Map<String, Object> run() throws InterruptedException {
        long end = System.nanoTime() + MILLISECONDS.toNanos(order.number("duration"));
        List<Thread> workers = new ArrayList<>();
        for (int i = 0; i < order.number("workers"); i++) {
            Random random = new Random(order.number("seed") + i);
            Thread worker = new Thread(() -> work(random, end));
            workers.add(worker);
            worker.start();
        }
        for (Thread worker : workers) {
            worker.join();
        }
        return Map.of("sections", sections, "increments", increments, "errors", errors);
    }

    private void work(Random random, long end) {
        while (System.nanoTime() < end) {
            Order chosen = locks.get(random.nextInt(locks.size()));
            try {
                pass(chosen, random);
            } catch (Throwable e) {
                errors.merge(chosen.text("kind") + ": " + e, 1L, Long::sum);
            }
        }
    }

    /** One attempt at a lock, and what it is for. */
    private void pass(Order chosen, Random random) throws InterruptedException {
        long asked = System.nanoTime();
        RLock lock = clients.lock(chosen);
        boolean multi = chosen.text("kind").equals("multi");
        long none = multi ? -1 : 0; // before 3.17.1, a MultiLock with a wait of 0 is not acquired, and is lost if it was held
        long wait = random.nextInt(4) == 0 ? none : 50 + random.nextInt(450);
        long lease = random.nextBoolean() ? LEASE : -1;
        if (multi && wait > 0) {
            // With a lease Redisson takes each part for twice the wait, and then sets the lease of all without asking who has
            // them. Where that takes longer than the wait, as on a busy machine, it says that it has what it has lost.
            wait += 700;
        }
        boolean nested = random.nextInt(4) == 0;
        Long token = null;
        try {
            if (chosen.text("kind").equals("fenced")) {
                token = Release.tryLockAndGetToken(lock, wait, lease);
                if (token == null) {
                    return;
                }
            } else if (!lock.tryLock(wait, lease, MILLISECONDS)) {
                return;
            }
        } catch (RedisTimeoutException e) {
            // On a busy machine it may not get round to subscribing within so short a wait.
            if (!e.getMessage().startsWith("Unable to acquire subscription lock")) {
                throw e;
            }
            sections.merge("unanswered", 1L, Long::sum);
            return;
        }
        long acquired = System.nanoTime();
        String step = "fence";
        try {
            try {
                if (token != null) {
                    fence(chosen, token);
                }
                step = "re-entry";
                if (nested && !lock.tryLock(none, lease, MILLISECONDS)) {
                    throw new IllegalStateException("its holder could not take it again");
                }
                step = "section";
                section(chosen);
                if (nested) {
                    step = "inner unlock";
                    lock.unlock();
                    step = "second section";
                    section(chosen);
                }
            } finally {
                step += ", then unlock";
                lock.unlock();
            }
        } catch (RuntimeException e) {
            throw new IllegalStateException(String.format(
                    "%s (%s of %s; wait %d, lease %d, nested %b; acquired after %d ms, failed %d ms later)",
                    e, step, chosen.texts("names"), wait, lease, nested, milliseconds(acquired - asked),
                    milliseconds(System.nanoTime() - acquired)), e);
        }
    }

    private static long milliseconds(long nanoseconds) {
        return NANOSECONDS.toMillis(nanoseconds);
    }

    /** Leaves the token for the next holder, whose own has to be larger. */
    private void fence(Order chosen, long token) {
        RBucket<String> last = bucket(chosen, chosen.text("fence"));
        long before = Long.parseLong(last.get());
        if (before >= token) {
            throw new IllegalStateException("fencing token " + token + " after " + before);
        }
        last.set(Long.toString(token));
    }

    private RBucket<String> bucket(Order chosen, String name) {
        return clients.get(chosen.texts("clients").get(0)).getBucket(name, StringCodec.INSTANCE);
    }

    private void section(Order chosen) {
        String kind = chosen.text("kind");
        for (String name : chosen.texts("counters")) {
            RBucket<String> counter = bucket(chosen, name);
            long before = Long.parseLong(counter.get());
            if (!kind.equals("read")) {
                counter.set(Long.toString(before + 1));
                increments.merge(name, 1L, Long::sum);
            } else if (Long.parseLong(counter.get()) != before) {
                throw new IllegalStateException("a counter changed while it was read");
            }
        }
        sections.merge(kind, 1L, Long::sum);
    }
}
