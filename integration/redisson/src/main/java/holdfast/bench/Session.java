package holdfast.bench;

import holdfast.peer.Order;
import java.io.IOException;
import java.util.List;

/** The client that a worker has open, with a lock for each thread, and the memory that it shares with other processes. */
final class Session {
    final Clients clients;
    final List<Locker> lockers;
    final Shared shared; // null if the task has none
    final int number; // of the worker; negative if each thread has a lock of its own
    private boolean closed;

    Session(Order open) throws IOException {
        clients = new Clients(open.text("Contestant"), open.order("Setup"));
        lockers = open.texts("Locks").stream().map(clients::locker).toList();
        shared = open.text("Shared").isEmpty() ? null : new Shared(open.text("Shared"));
        number = (int) open.number("Number");
    }

    /** Disconnects, which it does once. The memory is unmapped when it is collected. */
    synchronized void close() {
        if (!closed) {
            closed = true;
            clients.close();
        }
    }
}
