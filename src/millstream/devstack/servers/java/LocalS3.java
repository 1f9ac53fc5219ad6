package millstream;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.UserDefinedFileAttributeView;
import java.util.Iterator;
import java.util.Properties;
import org.gaul.s3proxy.S3Proxy;
import org.jclouds.ContextBuilder;
import org.jclouds.blobstore.BlobStore;
import org.jclouds.blobstore.BlobStoreContext;
import org.jclouds.blobstore.util.ForwardingBlobStore;

/**
 * S3Proxy over a folder, with one difference from its own program: deleting the marker of a folder that has objects
 * takes no time.
 *
 * The store tries to delete the folder ten times, a second apart, and then keeps it as a folder without a marker. Each
 * job of Spark's file writers deletes such a marker, that of its `_temporary/0/`.
 *
 * Compiled by Janino: no lambdas, and casts where generics would give the type.
 */
public final class LocalS3 extends ForwardingBlobStore {
    private final Path base;

    private LocalS3(BlobStore store, Path base) {
        super(store);
        this.base = base;
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        FileInputStream file = new FileInputStream(args[0]);
        try {
            properties.load(file);
        } finally {
            file.close();
        }
        BlobStoreContext context = (BlobStoreContext) ContextBuilder.newBuilder(properties.getProperty("jclouds.provider"))
                .credentials(properties.getProperty("jclouds.identity"), properties.getProperty("jclouds.credential"))
                .overrides(properties)
                .build(BlobStoreContext.class);
        Path base = new File(properties.getProperty("jclouds.filesystem.basedir")).toPath().toAbsolutePath().normalize();
        S3Proxy.Builder builder = S3Proxy.Builder.fromProperties(properties);
        builder.blobStore(new LocalS3(context.getBlobStore(), base)).build().start();
    }

    public void removeBlob(String container, String name) {
        if (!name.endsWith("/") || !unmark(this.base.resolve(container).resolve(name).normalize())) {
            super.removeBlob(container, name);
        }
    }

    public void removeBlobs(String container, Iterable names) {
        for (Iterator each = names.iterator(); each.hasNext();) {
            this.removeBlob(container, (String) each.next());
        }
    }

    /** Make a folder that is not empty no object; return whether it is such a folder. */
    private boolean unmark(Path folder) {
        String[] names = folder.startsWith(this.base) ? folder.toFile().list() : null;
        if (names == null || names.length == 0) {
            return false;
        }
        try {
            UserDefinedFileAttributeView view = (UserDefinedFileAttributeView) Files.getFileAttributeView(
                    folder, UserDefinedFileAttributeView.class, new LinkOption[0]);
            if (view != null) {
                for (Iterator each = view.list().iterator(); each.hasNext();) {
                    view.delete((String) each.next());
                }
            }
        } catch (IOException error) {
            // The file system has no such attributes, or another request deleted the folder: left to the store.
            return false;
        }
        return true;
    }
}
