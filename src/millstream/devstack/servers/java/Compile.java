import java.io.File;
import org.codehaus.commons.compiler.util.resource.ResourceFinder;
import org.codehaus.janino.ClassLoaderIClassLoader;
import org.codehaus.janino.Compiler;

/** Compiles a source file into a folder: Janino has no command for that, but one that runs a source file. */
public class Compile {
    public static void main(String[] args) throws Exception {
        Compiler compiler = new Compiler(
                ResourceFinder.EMPTY_RESOURCE_FINDER, new ClassLoaderIClassLoader(Compile.class.getClassLoader()));
        compiler.setDestinationDirectory(new File(args[1]), false);
        compiler.compile(new File[] {new File(args[0])});
    }
}
