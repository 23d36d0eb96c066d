package holdfast.peer;

/** Stands for Redisson's NameMapper where there is none. */
interface Mapper {
    String map(String name);

    String unmap(String name);
}
