package holdfast.peer;

import java.util.Map;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** JSON as far as orders and answers need it. Redisson brings no JSON, but YAML, of which JSON is a part. */
public final class Json {
    private Json() {}

    /** Reads an object. */
    public static Map<String, Object> read(String line) {
        return new Yaml(new SafeConstructor(new LoaderOptions())).load(line);
    }

    /** Writes null, a truth value, a number, a string, or a map or list of such. */
    public static String write(Object value) {
        StringBuilder text = new StringBuilder();
        append(text, value);
        return text.toString();
    }

    private static void append(StringBuilder text, Object value) {
        if (value == null || value instanceof Boolean || value instanceof Number) {
            text.append(value);
        } else if (value instanceof Map<?, ?> map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                text.append(separator);
                append(text, entry.getKey());
                text.append(':');
                append(text, entry.getValue());
                separator = ",";
            }
            text.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> list) {
            text.append('[');
            String separator = "";
            for (Object element : list) {
                text.append(separator);
                append(text, element);
                separator = ",";
            }
            text.append(']');
        } else {
            quote(text, value.toString());
        }
    }

    private static void quote(StringBuilder text, String value) {
        text.append('"');
        for (char c : value.toCharArray()) {
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c < ' ') {
                text.append(String.format("\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        text.append('"');
    }
}
