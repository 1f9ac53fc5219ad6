package millstream;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on S3, which creates a commit by one conditional write.
 *
 * <p>Delta's own class looks whether {@code 00000000000000000007.json} exists, and then writes it without a condition.
 * It excludes other writers of its own process alone.
 */
public class ConditionalLogStore extends S3SingleDriverLogStore {
  public ConditionalLogStore(Configuration configuration) {
    super(configuration);
  }

  public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration) throws IOException {
    FileSystem system = path.getFileSystem(configuration);
    FSDataOutputStream upload = ConditionalWrites.open(system, path, overwrite.booleanValue());
    boolean isComplete = false;
    try {
      while (actions.hasNext()) {
        upload.write(((String) actions.next()).concat("\n").getBytes(StandardCharsets.UTF_8));
      }
      isComplete = true;
    } finally {
      if (!isComplete) {
        upload.abort();
      }
    }
    try {
      ConditionalWrites.close(upload, path);
    } catch (FileAlreadyExistsException error) {
      throw (IOException) new java.nio.file.FileAlreadyExistsException(path.toString()).initCause(error);
    }
  }
}
