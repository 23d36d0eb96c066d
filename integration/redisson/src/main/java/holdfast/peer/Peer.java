package holdfast.peer;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Takes orders on standard input and answers on standard output, one JSON object per line.
 *
 * <p>Each order names a thread, which is a Java thread of its own and therefore an owner of locks of its own. The orders of
 * one thread are carried out in turn, those of several at the same time; so answers come in any order, and have the id of
 * their order. At the end of its input the peer closes its Redisson clients, releases nothing, and ends.
 */
public final class Peer {
    private final Clients clients = new Clients();
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
    private final PrintStream out;

    private Peer(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] args) throws IOException {
        // Nobody but answers writes to standard output.
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Peer peer = new Peer(out);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            peer.accept(new Order(Json.read(line)));
        }
        peer.clients.close();
        // Threads that still wait for a lock are not worth waiting for.
        System.exit(0);
    }

    private void accept(Order order) {
        threads.computeIfAbsent(order.thread(), Peer::thread).execute(() -> out.println(Json.write(answer(order))));
    }

    private static ExecutorService thread(String name) {
        return Executors.newSingleThreadExecutor(work -> {
            Thread thread = new Thread(work, name);
            thread.setDaemon(true);
            return thread;
        });
    }

    private Map<String, Object> answer(Order order) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", order.id());
        answer.put("start", System.currentTimeMillis());
        try {
            answer.put("value", new Operation(clients, order).run());
            answer.put("ok", true);
        } catch (Throwable e) { // whatever it is, the test has to hear of it
            // Before Redisson 3.24 some locks wrap their exceptions.
            Throwable cause = e instanceof CompletionException && e.getCause() != null ? e.getCause() : e;
            answer.put("ok", false);
            answer.put("class", cause.getClass().getName());
            answer.put("message", String.valueOf(cause.getMessage()));
        }
        answer.put("end", System.currentTimeMillis());
        return answer;
    }
}
