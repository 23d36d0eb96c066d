package holdfast.bench;

import holdfast.peer.Json;
import holdfast.peer.Order;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * A worker of the benchmark whose client is Redisson: does the tasks that bench/worker hands out, a line of JSON each on
 * standard input, and answers with one on standard output. It has one client open at a time, and does one task at a time.
 * The tasks are those of bench/scenario, where it says what they are for.
 */
public final class Worker {
    private Session session;

    private Worker() {}

    public static void main(String[] args) throws InterruptedException {
        // Nobody but answers writes to standard output.
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> read(lines), "input");
        reader.setDaemon(true);
        reader.start();
        Worker worker = new Worker();
        while (true) {
            out.println(worker.answer(lines.take()));
        }
    }

    private static void read(BlockingQueue<String> lines) {
        try {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                lines.add(line);
            }
        } catch (IOException e) {
            e.printStackTrace();
        }
        Runtime.getRuntime().halt(0); // also while a task hangs
    }

    private String answer(String line) {
        try {
            Order request = new Order(Json.read(line));
            return Json.write(Map.of("out", work(request)));
        } catch (Throwable e) { // whatever it is, the benchmark has to hear of it
            return Json.write(Map.of("error", e.toString()));
        }
    }

    private Object work(Order request) throws Exception {
        return switch (request.text("task")) {
            case "open" -> {
                if (session != null) {
                    throw new IllegalStateException("a client is open");
                }
                session = new Session(request.order("in"));
                yield Map.of();
            }
            case "close" -> {
                if (session != null) {
                    session.close();
                    session = null;
                }
                yield Map.of();
            }
            case "warm" -> {
                new Warming(session).run(request.order("in"));
                yield Map.of();
            }
            case "cycles" -> new Cycles(session).run((int) request.number("in"));
            case "run" -> new Load(session, request.order("in")).run();
            case "holder" -> {
                new HandOver(session).hold(request.order("in"));
                yield Map.of();
            }
            case "waiter" -> new HandOver(session).waitFor();
            case "quorum cycles" -> new Cycles(session).onNodes(request.order("in"));
            // That both sides mean the same by these is what a test asks for.
            case "clock" -> System.nanoTime();
            case "bars" -> {
                Histogram histogram = new Histogram();
                request.order("in").numbers("of").forEach(histogram::record);
                yield histogram.bars();
            }
            default -> throw new IllegalArgumentException("there is no task " + request.text("task"));
        };
    }
}
