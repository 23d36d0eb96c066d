package holdfast.peer;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.lang.reflect.InvocationTargetException;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Calls what only some releases of Redisson have, by its name, because this source is compiled with each of them. */
final class Release {
    private Release() {}

    static RLock spin(RedissonClient client, String name) {
        return lock(client, "getSpinLock", name, "spin");
    }

    static RLock fenced(RedissonClient client, String name) {
        return lock(client, "getFencedLock", name, "fenced");
    }

    static RLock nonReentrant(RedissonClient client, String name) {
        return lock(client, "getNonReentrantLock", name, "nonreentrant");
    }

    static RLock nonReentrantFair(RedissonClient client, String name) {
        return lock(client, "getNonReentrantFairLock", name, "nonreentrant-fair");
    }

    private static RLock lock(RedissonClient client, String method, String name, String kind) {
        try {
            return (RLock) invoke(RedissonClient.class, client, method, new Class<?>[] {String.class}, name);
        } catch (ReflectiveOperationException e) {
            throw new UnsupportedOperationException("this Redisson has no " + kind + " lock", e);
        }
    }

    static Long lockAndGetToken(RLock fenced, long lease) {
        Class<?>[] types = {long.class, TimeUnit.class};
        return token(fenced, "lockAndGetToken", types, lease, MILLISECONDS);
    }

    static Long tryLockAndGetToken(RLock fenced, long wait, long lease) {
        Class<?>[] types = {long.class, long.class, TimeUnit.class};
        return token(fenced, "tryLockAndGetToken", types, wait, lease, MILLISECONDS);
    }

    private static Long token(RLock fenced, String method, Class<?>[] types, Object... values) {
        try {
            return (Long) invoke(Class.forName("org.redisson.api.RFencedLock"), fenced, method, types, values);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e); // it has made this fenced lock
        }
    }

    private static Object invoke(Class<?> api, Object on, String method, Class<?>[] types, Object... values)
            throws ReflectiveOperationException {
        try {
            return api.getMethod(method, types).invoke(on, values);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof RuntimeException thrown) {
                throw thrown;
            }
            throw new IllegalStateException(e.getCause());
        }
    }
}
