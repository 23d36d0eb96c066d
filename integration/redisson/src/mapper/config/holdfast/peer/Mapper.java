package holdfast.peer;

import org.redisson.config.NameMapper;

/** Redisson's NameMapper, which is not in the same package in all releases. */
interface Mapper extends NameMapper {}
