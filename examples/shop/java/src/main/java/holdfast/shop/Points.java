package holdfast.shop;

import com.baomidou.lock.annotation.Lock4j;
import org.springframework.stereotype.Service;

/** Counts the points of customers, under the lock of an annotation. See points.go. */
@Service
public class Points {
    private final Data data;

    Points(Data data) {
        this.data = data;
    }

    @Lock4j(keys = "#customer", acquireTimeout = 60_000)
    public void add(String customer, long points) {
        data.set("points:" + customer, data.get("points:" + customer) + points);
    }
}
