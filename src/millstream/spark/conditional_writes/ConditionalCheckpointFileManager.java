package millstream;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Spark's file manager of checkpoints, which creates a file on S3 by one conditional write.
 *
 * <p>Spark's own managers look whether {@code offsets/7} exists, and then rename a finished file to that name. On S3
 * that is a copy that replaces: a driver that is suspended in between replaces the file of its successor. On other
 * file systems this class does what Millstream lets Spark do there.
 */
public class ConditionalCheckpointFileManager extends FileSystemBasedCheckpointFileManager {
  private final CheckpointFileManager elsewhere;

  public ConditionalCheckpointFileManager(Path path, Configuration configuration) throws IOException {
    super(path, configuration);
    String scheme = fs().getUri().getScheme();
    if ("s3a".equals(scheme)) {
      elsewhere = null;
    } else if ("file".equals(scheme)) {
      elsewhere = new FileSystemBasedCheckpointFileManager(path, configuration);
    } else {
      elsewhere = new FileContextBasedCheckpointFileManager(path, configuration);
    }
  }

  public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean overwriteIfPossible) {
    if (elsewhere != null) {
      return elsewhere.createAtomic(path, overwriteIfPossible);
    }
    try {
      // Files of state may replace those of an earlier attempt, and not what a successor has written meanwhile.
      FSDataOutputStream upload =
          overwriteIfPossible
              ? ConditionalWrites.openUnchanged(fs(), path)
              : ConditionalWrites.open(fs(), path, false);
      return new WholeObject(upload, path);
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  /** List a folder. S3 has none: one without objects is empty, and not missing. */
  public FileStatus[] list(Path path, PathFilter filter) {
    if (elsewhere != null) {
      return super.list(path, filter);
    }
    try {
      return fs().listStatus(path, filter);
    } catch (FileNotFoundException error) {
      return new FileStatus[0];
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  /** An object that appears when the stream is closed, and never if it is cancelled. */
  private static class WholeObject extends CheckpointFileManager.CancellableFSDataOutputStream {
    private final FSDataOutputStream upload;
    private final Path path;
    private boolean hasEnded;

    WholeObject(FSDataOutputStream upload, Path path) {
      super(upload);
      this.upload = upload;
      this.path = path;
      this.hasEnded = false;
    }

    public synchronized void close() throws IOException {
      if (!hasEnded) {
        hasEnded = true;
        ConditionalWrites.close(upload, path);
      }
    }

    public synchronized void cancel() {
      if (!hasEnded) {
        hasEnded = true;
        upload.abort();
      }
    }
  }
}
