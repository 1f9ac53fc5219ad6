package org.apache.kafka.common.network;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.KafkaPrincipalBuilder;
import org.apache.kafka.common.security.auth.KafkaPrincipalSerde;
import org.apache.kafka.common.security.auth.PlaintextAuthenticationContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets only the broker's own user and root connect to the local broker, by the owner of the client's socket.
 *
 * It takes the place of Kafka's class of this name, by standing before it on the class path. An Authorizer would not do:
 * a request that a broker forwards to its controller, such as the deletion of a topic, reaches the controller's
 * Authorizer with the connection of the broker, and nothing in it tells who sent it.
 *
 * Compiled by Janino: no lambdas, and casts where generics would give the type.
 */
public class PlaintextChannelBuilder implements ChannelBuilder {
    private final ListenerName listenerName;
    private Map configs;

    public PlaintextChannelBuilder(ListenerName listenerName) {
        this.listenerName = listenerName;
    }

    public void configure(Map configs) {
        this.configs = configs;
    }

    public KafkaChannel buildChannel(
            String id, SelectionKey key, int maxReceiveSize, MemoryPool pool, ChannelMetadataRegistry registry) {
        try {
            final PlaintextTransportLayer transport = new PlaintextTransportLayer(key);
            // A socket that was accepted waits to be read; one that this process opens, to be connected.
            final boolean accepted = (key.interestOps() & SelectionKey.OP_CONNECT) == 0;
            final Map settings = this.configs;
            final ListenerName name = this.listenerName;
            Supplier authenticator = new Supplier() {
                public Object get() {
                    return new OwnerAuthenticator(transport, settings, name, accepted);
                }
            };
            MemoryPool memory = pool != null ? pool : MemoryPool.NONE;
            return new KafkaChannel(id, transport, authenticator, maxReceiveSize, memory, registry);
        } catch (Exception failed) {
            throw new KafkaException(failed);
        }
    }

    public void close() {
    }

    /** Asks the kernel's tables of TCP sockets whose the other end of a connection is. */
    static class OwnerAuthenticator implements Authenticator {
        // A table that changes while it is read may lack a line.
        private static final int ATTEMPTS = 3;
        private static final int ESTABLISHED = 1;
        private static final Logger LOG = LoggerFactory.getLogger(OwnerAuthenticator.class);

        private final PlaintextTransportLayer transport;
        private final KafkaPrincipalBuilder principals;
        private final ListenerName listenerName;
        private boolean complete;

        OwnerAuthenticator(PlaintextTransportLayer transport, Map configs, ListenerName listenerName, boolean accepted) {
            this.transport = transport;
            this.principals = ChannelBuilders.createPrincipalBuilder(configs, null, null);
            this.listenerName = listenerName;
            this.complete = !accepted;
        }

        public void authenticate() throws IOException {
            Socket socket = this.transport.socketChannel().socket();
            InetSocketAddress client = (InetSocketAddress) socket.getRemoteSocketAddress();
            InetSocketAddress broker = (InetSocketAddress) socket.getLocalSocketAddress();
            long owner = owner(client, broker);
            if (owner != 0 && owner != ownUser()) {
                String whose = owner < 0 ? "of no user that is known" : "of user " + owner;
                LOG.info("a connection {} is refused: the broker serves its own user", whose);
                // Closes the connection at once. After an AuthenticationException Kafka would keep it for a while, and
                // ask again with each byte that the client has sent.
                throw new IOException("a connection " + whose + " is refused");
            }
            this.complete = true;
        }

        public KafkaPrincipal principal() {
            return this.principals.build(new PlaintextAuthenticationContext(
                    this.transport.socketChannel().socket().getInetAddress(), this.listenerName.value()));
        }

        public Optional principalSerde() {
            return this.principals instanceof KafkaPrincipalSerde ? Optional.of(this.principals) : Optional.empty();
        }

        public boolean complete() {
            return this.complete;
        }

        public void close() {
        }

        /** The user id of the client's socket, or -1 when there is none that is connected. */
        private static long owner(InetSocketAddress client, InetSocketAddress broker) throws IOException {
            for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
                long owner = ownerIn("/proc/self/net/tcp", written(client, false), written(broker, false));
                if (owner < 0) {
                    owner = ownerIn("/proc/self/net/tcp6", written(client, true), written(broker, true));
                }
                if (owner >= 0) {
                    return owner;
                }
            }
            return -1;
        }

        private static long ownerIn(String table, String local, String remote) throws IOException {
            BufferedReader lines = new BufferedReader(new InputStreamReader(new FileInputStream(table), "US-ASCII"));
            try {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …
                    String[] words = line.trim().split("\\s+");
                    boolean same = words.length > 9 && words[1].equals(local) && words[2].equals(remote);
                    // A socket that nobody has open any more is listed as root's, without an inode.
                    if (same && Integer.parseInt(words[3], 16) == ESTABLISHED && !words[9].equals("0")) {
                        return Long.parseLong(words[7]);
                    }
                }
            } finally {
                lines.close();
            }
            return -1;
        }

        /** An IPv4 address as the kernel's tables have it: in the machine's byte order, IPv6's form with its prefix. */
        private static String written(InetSocketAddress address, boolean mapped) {
            int number = ByteBuffer.wrap(address.getAddress().getAddress()).order(ByteOrder.nativeOrder()).getInt();
            int mark = ByteBuffer.wrap(new byte[] {0, 0, -1, -1}).order(ByteOrder.nativeOrder()).getInt();
            String prefix = mapped ? String.format("%016X%08X", new Object[] {Long.valueOf(0), Integer.valueOf(mark)}) : "";
            return prefix + String.format("%08X:%04X",
                    new Object[] {Integer.valueOf(number), Integer.valueOf(address.getPort())});
        }

        private static long ownUser() throws IOException {
            BufferedReader lines = new BufferedReader(new InputStreamReader(new FileInputStream("/proc/self/status"), "US-ASCII"));
            try {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    if (line.startsWith("Uid:")) {
                        // real, effective, saved, of file systems
                        return Long.parseLong(line.split("\\s+")[2]);
                    }
                }
            } finally {
                lines.close();
            }
            throw new IOException("/proc/self/status tells no user");
        }
    }
}
