package tahoe;

public class Analyzers implements scala.Function0 {
  private final scala.Function0 there;
  private final scala.Function1 names;

  public Analyzers(scala.Function0 there, scala.Function1 names) {
    this.there = there;
    this.names = names;
  }

  public Object apply() {
    Object analyzer = there.apply();
    try {
      names.apply(((org.apache.spark.sql.catalyst.analysis.Analyzer) analyzer).catalogManager());
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
    }
    return analyzer;
  }
}
