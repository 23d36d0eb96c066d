package holdfast.bench;

import static java.lang.invoke.MethodHandles.byteBufferViewVarHandle;
import static java.nio.ByteOrder.nativeOrder;
import static java.nio.channels.FileChannel.MapMode.READ_WRITE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/** The page of words that processes share: bench/worker makes it. */
final class Shared {
    private static final VarHandle WORDS = byteBufferViewVarHandle(long[].class, nativeOrder());

    private final ByteBuffer page;

    Shared(String path) throws IOException {
        try (FileChannel file = FileChannel.open(Path.of(path), READ, WRITE)) {
            page = file.map(READ_WRITE, 0, file.size()).order(nativeOrder());
        }
    }

    /** A word that a lock guards, and nothing else. */
    long plain(int word) {
        return (long) WORDS.get(page, 8 * word);
    }

    void setPlain(int word, long value) {
        WORDS.set(page, 8 * word, value);
    }

    /** A word by which processes keep in step. */
    long get(int word) {
        return (long) WORDS.getVolatile(page, 8 * word);
    }

    void set(int word, long value) {
        WORDS.setVolatile(page, 8 * word, value);
    }
}
