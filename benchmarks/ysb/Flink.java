import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.Timestamp;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.ScalarFunction;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * The Yahoo streaming benchmark in Flink SQL, in one JVM: KAFKA TOPIC ADS_CSV CHECKPOINTS JDBC_URL PARALLELISM.
 *
 * <p>The campaign of an ad comes from a function with a hash map, because a table of files has no lookup in Flink SQL,
 * and a regular join loses the event time. The counts arrive in this process, which writes them to Postgres. Prints
 * the rows per second after the first window.
 */
public final class Flink {

    private static final int WINDOW_MILLISECONDS = 10_000;

    /** The campaign of an ad, or NULL. */
    public static final class Campaign extends ScalarFunction {
        private final String path;
        private transient Map<String, String> campaigns;

        public Campaign(String path) {
            this.path = path;
        }

        @Override
        public void open(FunctionContext context) throws IOException {
            campaigns = new HashMap<>();
            for (String line : Files.readAllLines(Paths.get(path), StandardCharsets.UTF_8)) {
                String[] columns = line.split(",");
                campaigns.put(columns[0], columns[1]);
            }
        }

        public String eval(String ad) {
            return campaigns.get(ad);
        }
    }

    public static void main(String[] words) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("parallelism.default", words[5]);
        settings.setString("execution.checkpointing.interval", "1 s");
        settings.setString("execution.checkpointing.dir", Path.of(words[3]).toUri().toString());
        settings.setString("table.local-time-zone", "UTC");
        settings.setString("table.exec.mini-batch.enabled", "true");
        settings.setString("table.exec.mini-batch.allow-latency", "1 s");
        settings.setString("table.exec.mini-batch.size", "50000");
        TableEnvironment flink =
                TableEnvironment.create(
                        EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
        flink.createTemporarySystemFunction("campaign", new Campaign(words[2]));
        flink.executeSql(
                "CREATE TABLE events (ad_id STRING, event_type STRING, event_time TIMESTAMP_LTZ(3),"
                        + " WATERMARK FOR event_time AS event_time - INTERVAL '10' SECOND) WITH ("
                        + " 'connector' = 'kafka', 'properties.bootstrap.servers' = '" + words[0] + "',"
                        + " 'topic' = '" + words[1] + "', 'scan.startup.mode' = 'earliest-offset',"
                        + " 'scan.bounded.mode' = 'latest-offset',"
                        + " 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601')");
        String query =
                "SELECT campaign_id, window_start, COUNT(*) AS counted FROM TABLE(TUMBLE("
                        + " TABLE viewed, DESCRIPTOR(event_time), INTERVAL '10' SECOND))"
                        + " GROUP BY campaign_id, window_start, window_end";
        flink.executeSql(
                "CREATE TEMPORARY VIEW viewed AS SELECT campaign(ad_id) AS campaign_id, event_time FROM events"
                        + " WHERE event_type = 'view'");
        long firstWindow = 0;
        long first = 0;
        long last = 0;
        long lastWindow = 0;
        try (Connection database = DriverManager.getConnection(words[4]);
                CloseableIterator<Row> rows = flink.executeSql(query).collect()) {
            database.setAutoCommit(false);
            database.createStatement().execute(
                    "CREATE TABLE counts (campaign_id text, window_start timestamptz, views bigint,"
                            + " PRIMARY KEY (campaign_id, window_start))");
            PreparedStatement insert = database.prepareStatement("INSERT INTO counts VALUES (?, ?, ?)");
            while (rows.hasNext()) {
                Row row = rows.next();
                Instant start = ((java.time.LocalDateTime) row.getField(1)).toInstant(java.time.ZoneOffset.UTC);
                last = System.nanoTime();
                lastWindow = start.toEpochMilli();
                if (first == 0) {
                    first = last;
                    firstWindow = lastWindow;
                }
                insert.setString(1, (String) row.getField(0));
                insert.setTimestamp(2, Timestamp.from(start));
                insert.setLong(3, (Long) row.getField(2));
                insert.addBatch();
            }
            insert.executeBatch();
            database.commit();
        }
        long windows = (lastWindow - firstWindow) / WINDOW_MILLISECONDS;
        System.out.printf("{\"windows\": %d, \"seconds\": %.3f}%n", windows, (last - first) / 1e9);
        System.exit(0);
    }
}
