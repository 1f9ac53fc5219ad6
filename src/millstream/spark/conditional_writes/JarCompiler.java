import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.FileReader;
import java.io.Reader;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.codehaus.janino.SimpleCompiler;

/** Compile Java files into a jar with Spark's own compiler, which needs no JDK. A file may use those before it. */
public class JarCompiler {
  /** Write the jar that the first argument names, of the files that the others name. */
  public static void main(String[] arguments) throws Exception {
    ClassLoader known = JarCompiler.class.getClassLoader();
    Map classes = new TreeMap();
    for (int number = 1; number < arguments.length; number++) {
      SimpleCompiler compiler = new SimpleCompiler();
      compiler.setParentClassLoader(known);
      Reader source = new FileReader(arguments[number]);
      compiler.cook(arguments[number], source);
      source.close();
      classes.putAll(compiler.getBytecodes());
      known = compiler.getClassLoader();
    }
    ZipOutputStream jar = new ZipOutputStream(new BufferedOutputStream(new FileOutputStream(arguments[0])));
    for (Iterator names = classes.keySet().iterator(); names.hasNext();) {
      String name = (String) names.next();
      ZipEntry entry = new ZipEntry(name.replace('.', '/') + ".class");
      entry.setTime(315532800000L);
      jar.putNextEntry(entry);
      jar.write((byte[]) classes.get(name));
      jar.closeEntry();
    }
    jar.close();
  }
}
