package holdfast.shop;

import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.stream.Stream;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.springframework.stereotype.Service;

/** Reserves and moves what is in stock. See reservation.go and repack.go. */
@Service
class Stock {
    private final RedissonClient redisson;
    private final Data data;

    Stock(RedissonClient redisson, Data data) {
        this.redisson = redisson;
        this.data = data;
    }

    /** Takes n of what is in stock, and returns whether there was enough. */
    boolean reserve(String sku, long n) {
        RLock lock = redisson.getLock("shop:sku:" + sku);
        lock.lock();
        try {
            long left = data.get("stock:" + sku);
            if (left < n) {
                return false;
            }
            data.set("stock:" + sku, left - n);
            countSold(sku, n);
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Is called by others, too, so it locks by itself: the thread that holds the lock enters again. */
    private void countSold(String sku, long n) {
        RLock lock = redisson.getLock("shop:sku:" + sku);
        lock.lock();
        try {
            data.set("sold:" + sku, data.get("sold:" + sku) + n);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Turns n of one SKU into n of another, if there are as many. Both locks, or none, and always in the order of their
     * names: two threads that want the same locks in opposite orders would wait for each other.
     */
    boolean repack(String from, String to, long n) throws InterruptedException {
        RLock both = redisson.getMultiLock(
                Stream.of(from, to).sorted().map(sku -> redisson.getLock("shop:sku:" + sku)).toArray(RLock[]::new));
        if (!both.tryLock(60, -1, SECONDS)) {
            throw new IllegalStateException("busy: " + from + ", " + to);
        }
        try {
            long left = data.get("stock:" + from);
            if (left < n) {
                return false;
            }
            data.set("stock:" + from, left - n);
            data.set("stock:" + to, data.get("stock:" + to) + n);
            return true;
        } finally {
            both.unlock();
        }
    }
}
