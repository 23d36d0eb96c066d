package holdfast.peer;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.SentinelServersConfig;

/** The Redisson clients of this peer, by the names that orders give them, and their locks. */
final class Clients {
    /** For an answer. A machine that is busy with tests may be late. */
    private static final int TIMEOUT = 10_000;

    private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();

    /** Connects, and returns the client's id. */
    String open(Order order) {
        return add(order.text("client"), config(order));
    }

    /** Writes the configuration of a client that open would make. All of its keys are there. */
    String yaml(Order order) throws IOException {
        return config(order).toYAML();
    }

    private static Config config(Order order) {
        Config config = new Config();
        config.setLockWatchdogTimeout(order.number("watchdog"));
        // Redisson's own numbers, 16 and 32, are for servers with more cores.
        config.setThreads(8);
        config.setNettyThreads(4);
        List<String> addresses = order.texts("addresses").stream().map(address -> "redis://" + address).toList();
        switch (order.text("topology")) {
            case "single" -> config.useSingleServer()
                    .setAddress(addresses.get(0))
                    .setConnectionMinimumIdleSize(4)
                    .setConnectionPoolSize(32)
                    .setTimeout(TIMEOUT);
            case "cluster" -> {
                ClusterServersConfig cluster = config.useClusterServers()
                        .setMasterConnectionMinimumIdleSize(2)
                        .setMasterConnectionPoolSize(32)
                        .setTimeout(TIMEOUT);
                addresses.forEach(cluster::addNodeAddress);
            }
            case "sentinel" -> {
                SentinelServersConfig sentinel = config.useSentinelServers().setMasterName("mymaster");
                addresses.forEach(sentinel::addSentinelAddress);
            }
            default -> throw new IllegalArgumentException("no topology " + order.text("topology"));
        }
        return config;
    }

    private String add(String name, Config config) {
        RedissonClient client = Redisson.create(config);
        if (clients.putIfAbsent(name, client) != null) {
            client.shutdown();
            throw new IllegalArgumentException("there is a client " + name);
        }
        return client.getId();
    }

    RedissonClient get(String name) {
        RedissonClient client = clients.get(name);
        if (client == null) {
            throw new IllegalArgumentException("no client " + name);
        }
        return client;
    }

    /** The lock of an order: that has a kind, names, and clients, of which only a RedLock has more than one. */
    @SuppressWarnings("deprecation") // Redisson advises against its RedLock; who has it must be able to go on
    RLock lock(Order order) {
        List<String> names = order.texts("names");
        RedissonClient client = get(order.texts("clients").get(0));
        String name = names.get(0);
        return switch (order.text("kind")) {
            case "reentrant" -> client.getLock(name);
            case "fair" -> client.getFairLock(name);
            case "fenced" -> Release.fenced(client, name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            case "nonreentrant" -> Release.nonReentrant(client, name);
            case "nonreentrant-fair" -> Release.nonReentrantFair(client, name);
            case "spin" -> Release.spin(client, name);
            case "multi" -> client.getMultiLock(names.stream().map(client::getLock).toArray(RLock[]::new));
            case "red" -> client.getRedLock(nodes(order, name).toArray(RLock[]::new));
            default -> throw new IllegalArgumentException("no kind " + order.text("kind"));
        };
    }

    private List<RLock> nodes(Order order, String name) {
        List<RLock> locks = new ArrayList<>();
        for (String client : order.texts("clients")) {
            locks.add(get(client).getLock(name));
        }
        return locks;
    }

    /** Disconnects one client. It releases nothing. */
    void close(String name) {
        get(name).shutdown(0, 2, TimeUnit.SECONDS);
        clients.remove(name);
    }

    /** Disconnects all of them. */
    void close() {
        clients.keySet().parallelStream().forEach(this::close);
    }
}
