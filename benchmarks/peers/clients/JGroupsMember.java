import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.zip.CRC32;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.ReceiverAdapter;

/** A member of a JGroups channel, with the commands of member_loop.py. Arguments: stack, rank, members. */
public class JGroupsMember extends ReceiverAdapter {
    private final int rank;
    private final int members;
    private JChannel channel;
    private CRC32 digest = new CRC32();
    private long expected = 0, received = 0, firstNs = 0, lastNs = 0;
    private long[] sentNs = new long[0], timesNs = new long[0];
    private int timed = 0;

    JGroupsMember(int rank, int members) {
        this.rank = rank;
        this.members = members;
    }

    public static void main(String[] arguments) throws Exception {
        JGroupsMember member =
            new JGroupsMember(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
        member.join(arguments[0]);
        member.serve();
    }

    private void join(String stack) throws Exception {
        channel = new JChannel(stack);
        channel.setReceiver(this);
        channel.connect("peers");
        while (channel.getView().size() < members) {
            Thread.sleep(20);
        }
        System.out.println("{\"ready\": true}");
    }

    @Override
    public void receive(Message message) {
        long now = System.nanoTime();
        byte[] buffer = message.getBuffer();
        synchronized (this) {
            if (received == 0) {
                firstNs = now;
            }
            digest.update(buffer, 0, 8);
            if (sentNs.length > 0) {
                ByteBuffer header = ByteBuffer.wrap(buffer);
                if (header.getInt() == rank) {
                    timesNs[timed++] = now - sentNs[header.getInt()];
                }
            }
            received++;
            lastNs = now;
            if (received == expected) {
                notifyAll();
            }
        }
    }

    private void serve() throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            int count = Integer.parseInt(words[1]);
            expect(count, words[0].equals("delivery"));
            System.out.println(words[0].equals("rate")
                ? rate(count, Integer.parseInt(words[2]))
                : delivery(count, Double.parseDouble(words[2]), Integer.parseInt(words[3])));
        }
        channel.close();
    }

    /** Messages of a faster member may have arrived before this one has its command. */
    private synchronized void expect(int count, boolean isTimed) {
        expected = (long) count * members;
        timed = 0;
        sentNs = new long[isTimed ? count : 0];
        timesNs = new long[isTimed ? count : 0];
    }

    private String rate(int count, int size) throws Exception {
        for (int number = 0; number < count; number++) {
            channel.send(new Message(null, null, payload(number, size)));
        }
        waitComplete();
        return finish(String.format("\"rate\": %.1f", expected / ((lastNs - firstNs) / 1e9)));
    }

    private String delivery(int count, double rate, int size) throws Exception {
        long started = System.nanoTime() + (long) (1e9 * rank / members / rate);
        for (int number = 0; number < count; number++) {
            long waitNs = started + (long) (1e9 * number / rate) - System.nanoTime();
            if (waitNs > 0) {
                Thread.sleep(waitNs / 1_000_000, (int) (waitNs % 1_000_000));
            }
            sentNs[number] = System.nanoTime();
            channel.send(new Message(null, null, payload(number, size)));
        }
        waitComplete();
        StringBuilder times = new StringBuilder();
        for (long each : Arrays.copyOf(timesNs, timed)) {
            times.append(times.length() > 0 ? "," : "").append(each / 1000.0);
        }
        return finish("\"times_us\": [" + times + "]");
    }

    /** Add the digest, and be ready for the next messages: nobody sends any before all have answered. */
    private synchronized String finish(String answer) {
        String whole = String.format("{%s, \"digest\": \"%x\"}", answer, digest.getValue());
        received = 0;
        digest = new CRC32();
        return whole;
    }

    private byte[] payload(int number, int size) {
        return ByteBuffer.allocate(size).putInt(rank).putInt(number).array();
    }

    private synchronized void waitComplete() throws InterruptedException {
        while (received < expected) {
            wait();
        }
    }
}
