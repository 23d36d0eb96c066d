package holdfast.shop;

import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.springframework.stereotype.Service;

/** Closes the books of a night, once, wherever it is asked first. See nightly.go. */
@Service
class Nightly {
    private final RedissonClient redisson;
    private final Data data;

    Nightly(RedissonClient redisson, Data data) {
        this.redisson = redisson;
        this.data = data;
    }

    /** Returns whether it was done here. */
    boolean close(String night) {
        RLock lock = redisson.getLock("shop:nightly:" + night);
        if (!lock.tryLock()) {
            return false; // somebody else is at it
        }
        try {
            if (data.get("closed:" + night) > 0) {
                return false; // somebody else has done it
            }
            long sold = 0;
            for (String sku : Main.SKUS) {
                sold += data.get("sold:" + sku);
            }
            data.set("closed:" + night, 1 + sold);
            return true;
        } finally {
            lock.unlock();
        }
    }
}
