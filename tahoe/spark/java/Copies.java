package tahoe;

import org.apache.spark.sql.classic.SparkSession;

// Makes the copies of a session: Spark's own, to which Python adds Tahoe's names, and those of `withoutNames`.
public class Copies implements scala.Function2 {
  private static final ThreadLocal isWithoutNames = new ThreadLocal();
  private final scala.Function2 original;
  private final scala.Function2 addNames;

  public Copies(scala.Function2 original, scala.Function2 addNames) {
    this.original = original;
    this.addNames = addNames;
  }

  public Object apply(Object session, Object state) {
    Object copy = original.apply(session, state);
    if (isWithoutNames.get() != null) return copy;
    try {
      addNames.apply(session, copy);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
    }
    return copy;
  }

  // A copy for plans whose names are resolved. The JVM can free it: a copy with names refers to Python, and Python to the copy.
  // settings: names and values, each followed by a zero character.
  public SparkSession withoutNames(SparkSession session, String settings) {
    SparkSession copy;
    isWithoutNames.set(Boolean.TRUE);
    try {
      copy = session.cloneSession();
    } finally {
      isWithoutNames.remove();
    }
    String[] parts = settings.split("\0", -1);
    for (int i = 0; i + 1 < parts.length; i += 2) copy.conf().set(parts[i], parts[i + 1]);
    return copy;
  }
}
