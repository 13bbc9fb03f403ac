package tahoe;

import org.apache.spark.sql.catalyst.analysis.Analyzer;

public class Analyzers implements scala.Function0 {
  private final scala.Function0 original;
  private final scala.Function2 addNames;
  private final Object session;

  public Analyzers(scala.Function0 original, scala.Function2 addNames, Object session) {
    this.original = original;
    this.addNames = addNames;
    this.session = session;
  }

  public Object apply() {
    Object analyzer = original.apply();
    try {
      addNames.apply(session, ((Analyzer) analyzer).catalogManager());
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
    }
    return analyzer;
  }
}
