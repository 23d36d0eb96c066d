package holdfast.peer;

/** Puts a prefix before the names of locks, as services do that share a Redis. A YAML file may name it. */
public final class PrefixMapper implements Mapper {
    private String prefix = "";

    public String getPrefix() {
        return prefix;
    }

    public void setPrefix(String prefix) {
        this.prefix = prefix;
    }

    @Override
    public String map(String name) {
        return prefix + name;
    }

    @Override
    public String unmap(String name) {
        return name.startsWith(prefix) ? name.substring(prefix.length()) : name;
    }
}
