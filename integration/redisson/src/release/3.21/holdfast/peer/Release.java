package holdfast.peer;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.NameMapper;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.ClusterServersConfig;

/** The part of this peer that differs by release: for the releases with 3.21 in releases.txt. */
final class Release {
    private Release() {}

    interface Mapper extends NameMapper {}

    static RLock nonReentrant(RedissonClient client, String name) {
        throw noLock("nonreentrant");
    }

    static RLock nonReentrantFair(RedissonClient client, String name) {
        throw noLock("nonreentrant-fair");
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

    static void shardedChannels(ClusterServersConfig config) {} // Redisson has no such setting yet

    private static UnsupportedOperationException noLock(String kind) {
        return new UnsupportedOperationException("Redisson 3.21 has no " + kind + " lock");
    }
}
