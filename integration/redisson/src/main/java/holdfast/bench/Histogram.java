package holdfast.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Counts durations in the buckets of measure.Histogram. It is not safe for use by several threads: they have one each. */
final class Histogram {
    private static final int SUB_BITS = 8;
    private static final int SUB = 1 << SUB_BITS;
    private static final int BUCKETS = (39 - SUB_BITS + 1) * SUB;

    private final int[] counts = new int[BUCKETS];
    private long most;

    /** Counts a duration in nanoseconds; a negative one as 0. */
    void record(long duration) {
        long d = Math.max(duration, 0);
        counts[bucketOf(d)]++;
        most = Math.max(most, d);
    }

    private static int bucketOf(long d) {
        if (d < SUB) {
            return (int) d;
        }
        int exponent = Long.SIZE - Long.numberOfLeadingZeros(d) - SUB_BITS - 1;
        return (int) Math.min((exponent + 1L) * SUB + (d >>> exponent) - SUB, BUCKETS - 1);
    }

    void add(Histogram other) {
        for (int i = 0; i < BUCKETS; i++) {
            counts[i] += other.counts[i];
        }
        most = Math.max(most, other.most);
    }

    /** The buckets that are not empty, as measure.Bars. */
    Map<String, Object> bars() {
        List<Integer> bucket = new ArrayList<>();
        List<Integer> count = new ArrayList<>();
        for (int i = 0; i < BUCKETS; i++) {
            if (counts[i] > 0) {
                bucket.add(i);
                count.add(counts[i]);
            }
        }
        return Map.of("bucket", bucket, "count", count, "most", most);
    }
}
