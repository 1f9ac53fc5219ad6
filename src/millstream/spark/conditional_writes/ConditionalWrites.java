package millstream;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.commons.io.IOUtils;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;
import org.apache.hadoop.util.functional.FutureIO;

/** Objects on S3 that are written whole, on condition of what has their name at that moment. */
public final class ConditionalWrites {
  private static final String IF_NONE_MATCH = "fs.option.create.conditional.overwrite";
  private static final String IF_MATCH = "fs.option.create.conditional.overwrite.etag";
  // Spares the requests that look for a file or a folder of the name.
  private static final String WITHOUT_A_LOOK = "fs.s3a.create.performance";
  private static final Object[] LOCKS = new Object[64];

  static {
    for (int number = 0; number < LOCKS.length; number++) {
      LOCKS[number] = new Object();
    }
  }

  private ConditionalWrites() {}

  /** Open an object, which others see once {@link #close} has ended. If it may not replace, it must be created. */
  public static FSDataOutputStream open(FileSystem system, Path path, boolean replaces) throws IOException {
    FSDataOutputStreamBuilder builder = start(system, path);
    if (!replaces) {
      builder.must(IF_NONE_MATCH, true);
    }
    return (FSDataOutputStream) builder.build();
  }

  /** Open an object that must be created, or replace what has its name at this moment and nothing later. */
  public static FSDataOutputStream openUnchanged(FileSystem system, Path path) throws IOException {
    String tag;
    try {
      tag = findTag(system, path);
    } catch (FileNotFoundException error) {
      return open(system, path, false);
    }
    FSDataOutputStreamBuilder builder = start(system, path);
    builder.must(IF_MATCH, tag);
    return (FSDataOutputStream) builder.build();
  }

  /**
   * Complete an object, in one request that S3 decides.
   *
   * <p>Some servers, such as S3Proxy, look for the object and then write it. So that two queries of one process do not
   * both create a commit of one table, this process writes an object only after its other writes of that object.
   *
   * @throws FileAlreadyExistsException if another writer has created or changed it meanwhile
   */
  public static void close(FSDataOutputStream stream, Path path) throws IOException {
    try {
      synchronized (LOCKS[Math.floorMod(path.hashCode(), LOCKS.length)]) {
        stream.close();
      }
    } catch (IOException error) {
      if (isRefused(error)) {
        throw (IOException) new FileAlreadyExistsException(path + " was written by another process").initCause(error);
      }
      throw error;
    }
  }

  /** Create an object, or replace any of its name. */
  public static void write(FileSystem system, Path path, byte[] content, boolean replaces) throws IOException {
    finish(open(system, path, replaces), path, content);
  }

  /** Replace an object of which this is the tag. Throws FileAlreadyExistsException if it has another one or is gone. */
  public static void replace(FileSystem system, Path path, byte[] content, String tag) throws IOException {
    FSDataOutputStreamBuilder builder = start(system, path);
    builder.must(IF_MATCH, tag);
    finish((FSDataOutputStream) builder.build(), path, content);
  }

  /** Return the tag of an object and its content as text, both of the same moment. */
  public static String[] read(FileSystem system, Path path) throws IOException {
    while (true) {
      FileStatus status = system.getFileStatus(path);
      String tag = ((EtagSource) status).getEtag();
      // With the status the client need not ask for it once more.
      FutureDataInputStreamBuilder builder = system.openFile(path);
      builder.withFileStatus(status);
      FSDataInputStream stream = (FSDataInputStream) FutureIO.awaitFuture(builder.build());
      byte[] content;
      try {
        content = IOUtils.toByteArray(stream);
      } catch (RemoteFileChangedException error) {
        continue;
      } finally {
        stream.close();
      }
      if (tag.equals(findTag(system, path))) {
        return new String[] {tag, new String(content, StandardCharsets.UTF_8)};
      }
    }
  }

  private static String findTag(FileSystem system, Path path) throws IOException {
    return ((EtagSource) system.getFileStatus(path)).getEtag();
  }

  private static FSDataOutputStreamBuilder start(FileSystem system, Path path) {
    FSDataOutputStreamBuilder builder = system.createFile(path);
    builder.recursive();
    builder.overwrite(true);
    builder.opt(WITHOUT_A_LOOK, true);
    return builder;
  }

  private static void finish(FSDataOutputStream stream, Path path, byte[] content) throws IOException {
    boolean isWhole = false;
    try {
      stream.write(content);
      isWhole = true;
    } finally {
      if (!isWhole) {
        stream.abort();
      }
    }
    close(stream, path);
  }

  private static boolean isRefused(Throwable error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof RemoteFileChangedException) {
        return true;
      }
    }
    return false;
  }
}
