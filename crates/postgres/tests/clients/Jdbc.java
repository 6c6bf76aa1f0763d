import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;

/** JDBC at its common work. The environment says where the server is (PGHOST and its kin). */
public class Jdbc {
    static void is(Object wanted, Object answered) {
        if (!wanted.equals(answered)) {
            throw new AssertionError("wanted " + wanted + ", answered " + answered);
        }
    }

    static Object one(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getObject(1);
        }
    }

    static void prepared(Connection connection) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO j VALUES (?, ?, ?)")) {
            insert.setLong(1, 1);
            insert.setString(2, "é");
            insert.setBigDecimal(3, new BigDecimal("12.34"));
            is(1, insert.executeUpdate());
        }
        try (PreparedStatement select = connection.prepareStatement("SELECT * FROM j WHERE id = ?")) {
            // From the fifth time on it is prepared on the server, and its rows come in binary.
            for (int round = 0; round < 8; round++) {
                select.setLong(1, 1);
                try (ResultSet rows = select.executeQuery()) {
                    is(true, rows.next());
                    is(1L, rows.getLong(1));
                    is("é", rows.getString(2));
                    is(new BigDecimal("12.34"), rows.getBigDecimal(3));
                    is(false, rows.next());
                }
            }
        }
    }

    static void batches(Connection connection) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO j (id, name) VALUES (?, ?)")) {
            for (int id = 100; id < 1100; id++) {
                insert.setLong(1, id);
                insert.setString(2, "name " + id);
                insert.addBatch();
            }
            int[] counts = insert.executeBatch();
            is(1000, counts.length);
            is(1000, Arrays.stream(counts).sum());
        }
        is(1001L, one(connection, "SELECT count(*) FROM j"));
    }

    static void transactions(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate("DELETE FROM j");
            connection.rollback();
            is(1001L, one(connection, "SELECT count(*) FROM j"));
            var savepoint = connection.setSavepoint();
            statement.executeUpdate("UPDATE j SET name = 'changed' WHERE id = 100");
            try {
                statement.executeUpdate("INSERT INTO j (id) VALUES (1)");
                throw new AssertionError("a key twice");
            } catch (SQLException refused) {
                is("23", refused.getSQLState().substring(0, 2));
            }
            connection.rollback(savepoint);
            statement.executeUpdate("UPDATE j SET name = 'kept' WHERE id = 101");
            connection.commit();
        }
        is("name 100", one(connection, "SELECT name FROM j WHERE id = 100"));
        is("kept", one(connection, "SELECT name FROM j WHERE id = 101"));
        connection.commit();
    }

    static void pieces(Connection connection) throws SQLException {
        try (PreparedStatement select = connection.prepareStatement("SELECT id FROM j WHERE id >= ? ORDER BY id")) {
            select.setFetchSize(70);
            select.setLong(1, 100);
            long wanted = 100;
            try (ResultSet rows = select.executeQuery()) {
                while (rows.next()) {
                    is(wanted++, rows.getLong(1));
                }
            }
            is(1100L, wanted);
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    public static void main(String[] arguments) throws SQLException {
        var environment = System.getenv();
        String url = "jdbc:postgresql://localhost:" + environment.get("PGPORT") + "/any?" + String.join("&", arguments);
        try (Connection connection = DriverManager.getConnection(url, environment.get("PGUSER"), environment.get("PGPASSWORD"));
                Statement statement = connection.createStatement()) {
            is(true, connection.isValid(5));
            statement.executeUpdate("CREATE TABLE j (id BIGINT PRIMARY KEY, name TEXT, n NUMERIC(20,2))");
            prepared(connection);
            batches(connection);
            transactions(connection);
            pieces(connection);
            statement.executeUpdate("DROP TABLE j");
        }
    }
}
