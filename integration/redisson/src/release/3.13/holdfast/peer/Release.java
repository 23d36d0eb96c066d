package holdfast.peer;

import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.ClusterServersConfig;

/** The part of this peer that differs by release: for Redisson 3.13 and those after it that releases.txt names. */
final class Release {
    private Release() {}

    interface Mapper { // not one of Redisson's, which has none
        String map(String name);

        String unmap(String name);
    }

    static RLock spin(RedissonClient client, String name) {
        throw new UnsupportedOperationException("Redisson 3.13 has no spin lock");
    }

    static RLock fenced(RedissonClient client, String name) {
        throw noFencedLock();
    }

    static long lockAndGetToken(RLock fenced, long lease) {
        throw noFencedLock();
    }

    static Long tryLockAndGetToken(RLock fenced, long wait, long lease) {
        throw noFencedLock();
    }

    static void shardedChannels(ClusterServersConfig config) {} // it has no setting for them

    private static UnsupportedOperationException noFencedLock() {
        return new UnsupportedOperationException("Redisson 3.13 has no fenced lock");
    }
}
