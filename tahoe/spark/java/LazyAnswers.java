package tahoe;

// The answers of Python for a proxy of a copied session, which Python creates at the first question. Most copies only execute plans whose
// names are resolved, and a copy with answers is never freed: it refers to them, and they to the copy.
public class LazyAnswers extends scala.runtime.AbstractFunction6 {
  private final scala.Function1 answersOf;
  private final Object name;
  private volatile scala.Function6 answers = null;

  public LazyAnswers(scala.Function1 answersOf, Object name) {
    this.answersOf = answersOf;
    this.name = name;
  }

  public Object apply(Object method, Object count, Object a, Object b, Object c, Object d) {
    if (answers == null) answers = (scala.Function6) answersOf.apply(name);
    return answers.apply(method, count, a, b, c, d);
  }
}
