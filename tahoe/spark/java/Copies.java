package tahoe;

public class Copies implements scala.Function2 {
  private final scala.Function2 there;
  private final scala.Function2 names;

  public Copies(scala.Function2 there, scala.Function2 names) {
    this.there = there;
    this.names = names;
  }

  public Object apply(Object session, Object state) {
    Object copy = there.apply(session, state);
    try {
      names.apply(session, copy);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
    }
    return copy;
  }
}
