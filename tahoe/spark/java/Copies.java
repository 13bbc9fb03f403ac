package tahoe;

public class Copies implements scala.Function2 {
  private final scala.Function2 original;
  private final scala.Function2 addNames;

  public Copies(scala.Function2 original, scala.Function2 addNames) {
    this.original = original;
    this.addNames = addNames;
  }

  public Object apply(Object session, Object state) {
    Object copy = original.apply(session, state);
    try {
      addNames.apply(session, copy);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
    }
    return copy;
  }
}
