package tahoe;

import java.lang.reflect.*;

public class StreamWriter {
  private final Object writer;

  public StreamWriter(Object writer) { this.writer = writer; }

  public Object field(String name) throws Exception {
    Field field = writer.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(writer);
  }

  public Object call(String name, java.util.List arguments) throws Exception {
    Method[] methods = writer.getClass().getDeclaredMethods();
    for (int i = 0; i < methods.length; i++) {
      if (!methods[i].getName().equals(name) || methods[i].getParameterCount() != arguments.size()) continue;
      methods[i].setAccessible(true);
      try {
        return methods[i].invoke(writer, arguments.toArray());
      } catch (InvocationTargetException error) {
        org.apache.spark.unsafe.Platform.throwException(error.getCause());
      }
    }
    throw new NoSuchMethodException(writer.getClass().getName() + "." + name);
  }
}
