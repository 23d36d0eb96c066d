package holdfast.shop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;

/**
 * Works in the shop: {@code Main <address of Redis> <workers> <rounds>}. It prints a line when it begins, waits for one on
 * standard input, and reports what it did, a name and a number per line. See main.go.
 */
@SpringBootApplication
public class Main {
    static final List<String> SKUS = List.of("book", "pen", "cup");

    /** How often the price is raised until it is the next night, for all services. */
    private static final long RAISES_A_NIGHT = 6;

    @Bean(destroyMethod = "shutdown")
    RedissonClient redisson() {
        Config config = new Config();
        config.setThreads(8);
        config.setNettyThreads(4);
        config.useSingleServer()
                .setAddress("redis://" + System.getProperty("shop.redis"))
                .setConnectionMinimumIdleSize(4)
                .setConnectionPoolSize(32)
                .setTimeout(10_000);
        return Redisson.create(config);
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("shop.redis", args[0]);
        int workers = Integer.parseInt(args[1]);
        int rounds = Integer.parseInt(args[2]);
        SpringApplication application = new SpringApplication(Main.class);
        application.setBannerMode(org.springframework.boot.Banner.Mode.OFF);
        Map<String, Long> report = new TreeMap<>();
        try (ConfigurableApplicationContext context = application.run()) {
            System.out.println("ready");
            System.in.read();
            ExecutorService pool = Executors.newFixedThreadPool(workers);
            List<Future<Map<String, Long>>> working = new ArrayList<>();
            for (int worker = 0; worker < workers; worker++) {
                int number = worker;
                working.add(pool.submit(() -> work(context, number, rounds)));
            }
            for (Future<Map<String, Long>> work : working) {
                work.get().forEach((name, count) -> report.merge(name, count, Long::sum));
            }
            pool.shutdown();
        }
        report.forEach((name, count) -> System.out.println(name + " " + count));
    }

    /** Does everything that the shop can, in each round. */
    private static Map<String, Long> work(ConfigurableApplicationContext shop, int worker, int rounds) throws Exception {
        Map<String, Long> report = new TreeMap<>();
        for (int round = 0; round < rounds; round++) {
            String sku = SKUS.get((worker + round) % SKUS.size());
            String other = SKUS.get((worker + round + 1) % SKUS.size());
            if (shop.getBean(Stock.class).reserve(sku, 1)) {
                report.merge("reserved", 1L, Long::sum);
            }
            shop.getBean(Stock.class).repack(sku, other, 2);
            long net = shop.getBean(Prices.class).raise();
            Prices.Price price = shop.getBean(Prices.class).read();
            if (price.gross() != 2 * price.net()) {
                report.merge("inconsistent", 1L, Long::sum);
            }
            shop.getBean(Points.class).add("ada", 1);
            if (shop.getBean(Nightly.class).close("night-" + (net - 1) / RAISES_A_NIGHT)) {
                report.merge("nights", 1L, Long::sum);
            }
        }
        return report;
    }
}
