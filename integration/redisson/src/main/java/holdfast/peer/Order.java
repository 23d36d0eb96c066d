package holdfast.peer;

import java.util.List;
import java.util.Map;

/** What an order says. Times are in milliseconds; the benchmark's are in nanoseconds. */
public record Order(Map<String, Object> fields) {
    long id() {
        return number("id");
    }

    String thread() {
        return text("thread");
    }

    public String text(String name) {
        return (String) required(name);
    }

    public long number(String name) {
        return ((Number) required(name)).longValue();
    }

    public List<Long> numbers(String name) {
        return list(name, Number.class).stream().map(Number::longValue).toList();
    }

    public List<String> texts(String name) {
        return list(name, String.class);
    }

    /** The order within this one. */
    public Order order(String name) {
        return of((Map<?, ?>) required(name));
    }

    /** The orders within this one. */
    List<Order> orders(String name) {
        return list(name, Map.class).stream().map(Order::of).toList();
    }

    @SuppressWarnings("unchecked") // the keys of JSON are strings
    private static Order of(Map<?, ?> fields) {
        return new Order((Map<String, Object>) fields);
    }

    private <T> List<T> list(String name, Class<T> of) {
        return ((List<?>) required(name)).stream().map(of::cast).toList();
    }

    private Object required(String name) {
        Object value = fields.get(name);
        if (value == null) {
            throw new IllegalArgumentException("the order has no " + name + ": " + fields);
        }
        return value;
    }
}
