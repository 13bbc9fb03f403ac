package tahoe;

import java.util.concurrent.atomic.AtomicReference;

// Creates the answers for the proxies of a copied session together, because they share state: name of a proxy -> its answers.
public class AnswersOfCopy extends scala.runtime.AbstractFunction1 {
  private final scala.Function2 create;
  private final Object session;
  private final Object originals;
  private final AtomicReference created = new AtomicReference();

  public AnswersOfCopy(scala.Function2 create, Object session, Object originals) {
    this.create = create;
    this.session = session;
    this.originals = originals;
  }

  // Without a lock: Python may come back on another thread.
  public Object apply(Object name) {
    try {
      if (created.get() == null) created.compareAndSet(null, create.apply(session, originals));
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
    }
    return ((java.util.Map) created.get()).get(name);
  }
}
