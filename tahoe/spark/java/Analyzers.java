package tahoe;

public class Analyzers implements scala.Function0 {
  private final scala.Function0 original;
  private final scala.Function1 addNames;

  public Analyzers(scala.Function0 original, scala.Function1 addNames) {
    this.original = original;
    this.addNames = addNames;
  }

  public Object apply() {
    Object analyzer = original.apply();
    try {
      addNames.apply(((org.apache.spark.sql.catalyst.analysis.Analyzer) analyzer).catalogManager());
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
    }
    return analyzer;
  }
}
