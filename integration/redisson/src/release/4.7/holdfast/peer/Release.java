package holdfast.peer;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.NameMapper;
import org.redisson.config.ShardedSubscriptionMode;

/** The part of this peer that differs by release: for the releases with 4.7 in releases.txt. */
final class Release {
    private Release() {}

    interface Mapper extends NameMapper {}

    static RLock nonReentrant(RedissonClient client, String name) {
        return client.getNonReentrantLock(name);
    }

    static RLock nonReentrantFair(RedissonClient client, String name) {
        return client.getNonReentrantFairLock(name);
    }

    static RLock spin(RedissonClient client, String name) {
        return client.getSpinLock(name);
    }

    static RLock fenced(RedissonClient client, String name) {
        return client.getFencedLock(name);
    }

    static long lockAndGetToken(RLock fenced, long lease) {
        return ((RFencedLock) fenced).lockAndGetToken(lease, MILLISECONDS);
    }

    static Long tryLockAndGetToken(RLock fenced, long wait, long lease) {
        return ((RFencedLock) fenced).tryLockAndGetToken(wait, lease, MILLISECONDS);
    }

    static void shardedChannels(ClusterServersConfig config) {
        config.setShardedSubscriptionMode(ShardedSubscriptionMode.AUTO);
    }
}
