package holdfast.peer;

import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.ClusterServersConfig;

/** The part of this peer that differs by release: for the releases with 3.13 in releases.txt. */
final class Release {
    private Release() {}

    interface Mapper { // Redisson 3.13 has no NameMapper
        String map(String name);

        String unmap(String name);
    }

    static RLock nonReentrant(RedissonClient client, String name) {
        throw noLock("nonreentrant");
    }

    static RLock nonReentrantFair(RedissonClient client, String name) {
        throw noLock("nonreentrant-fair");
    }

    static RLock spin(RedissonClient client, String name) {
        throw noLock("spin");
    }

    static RLock fenced(RedissonClient client, String name) {
        throw noLock("fenced");
    }

    static long lockAndGetToken(RLock fenced, long lease) {
        throw noLock("fenced");
    }

    static Long tryLockAndGetToken(RLock fenced, long wait, long lease) {
        throw noLock("fenced");
    }

    static void shardedChannels(ClusterServersConfig config) {} // Redisson has no such setting yet

    private static UnsupportedOperationException noLock(String kind) {
        return new UnsupportedOperationException("Redisson 3.13 has no " + kind + " lock");
    }
}
