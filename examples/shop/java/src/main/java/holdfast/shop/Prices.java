package holdfast.shop;

import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.springframework.stereotype.Service;

/** Caches prices: any number of readers, or one writer. See prices.go. */
@Service
class Prices {
    /** A price without and with tax: readers never see the one without the other. */
    record Price(long net, long gross) {}

    private final RReadWriteLock lock;
    private final Data data;

    Prices(RedissonClient redisson, Data data) {
        this.lock = redisson.getReadWriteLock("shop:prices");
        this.data = data;
    }

    Price read() {
        RLock read = lock.readLock();
        read.lock();
        try {
            return new Price(data.get("price:net"), data.get("price:gross"));
        } finally {
            read.unlock();
        }
    }

    /** Raises the price by one, and returns the new one. */
    long raise() {
        RLock write = lock.writeLock();
        write.lock();
        try {
            long net = data.get("price:net") + 1;
            data.set("price:net", net);
            data.set("price:gross", 2 * net);
            return net;
        } finally {
            write.unlock();
        }
    }
}
