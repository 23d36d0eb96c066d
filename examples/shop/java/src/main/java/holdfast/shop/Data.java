package holdfast.shop;

import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.springframework.stereotype.Component;

/** The numbers of the shop. Reading one and writing it back is two commands: only locks keep others out in between. */
@Component
class Data {
    private final RedissonClient redisson;

    Data(RedissonClient redisson) {
        this.redisson = redisson;
    }

    long get(String key) {
        String value = redisson.<String>getBucket(key, StringCodec.INSTANCE).get();
        return value == null ? 0 : Long.parseLong(value);
    }

    void set(String key, long value) {
        redisson.<String>getBucket(key, StringCodec.INSTANCE).set(Long.toString(value));
    }
}
