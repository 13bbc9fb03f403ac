package tahoe;

import java.util.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.aggregate.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.types.*;

public class FromLog extends org.apache.spark.sql.catalyst.rules.Rule {
  private final scala.Function6 answers;

  public FromLog(scala.Function6 answers) { this.answers = answers; }

  public TreeNode apply(TreeNode plan) {
    return plan.transformUp(new Changed(this));
  }

  public LogicalPlan changed(Object node) {
    if (node instanceof Aggregate) return aggregated((Aggregate) node);
    if (node instanceof LocalLimit) return limited((LocalLimit) node);
    return null;
  }

  // -- nodes above a scan ---------------------------------------------------------------------------------------------------

  // For a plan of projections and filters over one Delta scan: the scan, its column names, and the filters.
  private static class Chain {
    LogicalRelation scan;
    Map names = new HashMap();
    StringBuilder filters = new StringBuilder();
    List conditions = new ArrayList();
  }

  private static Chain chain(LogicalPlan plan) {
    List projects = new ArrayList();
    Chain chain = new Chain();
    while (!(plan instanceof LogicalRelation)) {
      if (plan instanceof Project) {
        projects.add(plan);
        plan = ((Project) plan).child();
      } else if (plan instanceof Filter) {
        if (!gathered(((Filter) plan).condition(), chain)) return null;
        plan = ((Filter) plan).child();
      } else {
        return null;
      }
    }
    chain.scan = (LogicalRelation) plan;
    if (!(chain.scan.relation() instanceof HadoopFsRelation)) return null;
    if (!index(chain).getClass().getName().equals("tahoe.LogFiles")) return null;
    for (scala.collection.Iterator each = chain.scan.output().iterator(); each.hasNext();) {
      Attribute column = (Attribute) each.next();
      chain.names.put(column.exprId(), column.name());
    }
    for (int i = projects.size() - 1; i >= 0; i--)
      for (scala.collection.Iterator each = ((Project) projects.get(i)).projectList().iterator(); each.hasNext();) {
        Object expression = each.next();
        if (expression instanceof Alias && ((Alias) expression).child() instanceof Attribute)
          chain.names.put(((Alias) expression).exprId(), chain.names.get(((Attribute) ((Alias) expression).child()).exprId()));
      }
    return chain;
  }

  // The filters except the one that removes deleted rows, which the log's counts already exclude.
  private static boolean gathered(Expression condition, Chain chain) {
    if (condition instanceof And) return gathered(((And) condition).left(), chain) && gathered(((And) condition).right(), chain);
    for (scala.collection.Iterator each = condition.references().iterator(); each.hasNext();)
      if (((Attribute) each.next()).name().equals("{{deleted_rows}}")) return true;
    if (!condition.deterministic() || condition.references().isEmpty()) return false;
    chain.filters.append(chain.conditions.isEmpty() ? "" : "\n").append(condition.toJSON());
    chain.conditions.add(condition);
    return true;
  }

  private static org.apache.spark.sql.execution.datasources.FileIndex index(Chain chain) {
    return ((HadoopFsRelation) chain.scan.relation()).location();
  }

  private Object answer(String question, Chain chain, String request, Object node) {
    try {
      return answers.apply(question, index(chain).toString(), chain.filters.toString(), seq(chain.conditions), request, node);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
      return null;
    }
  }

  // -- aggregates -------------------------------------------------------------------------------------------------------------

  private LogicalPlan aggregated(Aggregate aggregate) {
    if (aggregate.groupingExpressions().isEmpty()) return constants(aggregate);
    Chain chain = chain(aggregate.child());
    if (chain == null) return null;
    scala.collection.Iterator groups = aggregate.groupingExpressions().iterator();
    Set grouped = new HashSet();
    List attributes = new ArrayList();
    StringBuilder request = new StringBuilder();
    while (groups.hasNext()) {
      Object group = groups.next();
      String name = group instanceof Attribute ? (String) chain.names.get(((Attribute) group).exprId()) : null;
      if (name == null) return null;
      if (!grouped.add(((Attribute) group).exprId())) continue;
      attributes.add(group);
      request.append(request.length() == 0 ? "" : "\n").append(name);
    }
    for (scala.collection.Iterator each = aggregate.aggregateExpressions().iterator(); each.hasNext();) {
      Object expression = each.next();
      if (expression instanceof Alias) expression = ((Alias) expression).child();
      if (!(expression instanceof Attribute) || !grouped.contains(((Attribute) expression).exprId())) return null;
    }
    Object rows = answer("partitions", chain, request.toString(), seq(attributes));
    if (rows == null) return null;
    return (LogicalPlan) ((Aggregate) aggregate).withNewChildren(seq(Collections.singletonList(rows)));
  }

  private LogicalPlan constants(Aggregate aggregate) {
    List functions = new ArrayList();
    for (scala.collection.Iterator each = aggregate.aggregateExpressions().iterator(); each.hasNext();)
      collect((Expression) each.next(), functions);
    Chain chain = functions.isEmpty() ? null : chain(aggregate.child());
    if (chain == null) return null;
    StringBuilder request = new StringBuilder();
    for (int i = 0; i < functions.size(); i++) {
      String line = question((AggregateExpression) functions.get(i), chain);
      if (line == null) return null;
      request.append(i == 0 ? "" : "\n").append(line);
    }
    String result = (String) answer("constants", chain, request.toString(), null);
    if (result == null) return null;
    String[] values = result.split("\n", -1);
    List projected = new ArrayList();
    for (scala.collection.Iterator each = aggregate.aggregateExpressions().iterator(); each.hasNext();)
      projected.add(((Expression) each.next()).transformUp(new Constants(functions, values)));
    return new Project(seq(projected), new OneRowRelation());
  }

  private static void collect(Expression expression, List functions) {
    if (expression instanceof AggregateExpression) {
      functions.add(expression);
      return;
    }
    for (scala.collection.Iterator each = expression.children().iterator(); each.hasNext();)
      collect((Expression) each.next(), functions);
  }

  private static String question(AggregateExpression expression, Chain chain) {
    if (expression.isDistinct() || expression.filter().isDefined() || expression.aggregateFunction().children().size() != 1) return null;
    Object argument = expression.aggregateFunction().children().head();
    if (expression.aggregateFunction() instanceof Count && argument instanceof Literal) return ((Literal) argument).value() == null ? null : "count";
    String name = argument instanceof Attribute ? (String) chain.names.get(((Attribute) argument).exprId()) : null;
    if (name == null) return null;
    if (expression.aggregateFunction() instanceof Count) return "count of\t" + name;
    if (expression.aggregateFunction() instanceof Min) return "least\t" + name;
    return expression.aggregateFunction() instanceof Max ? "greatest\t" + name : null;
  }

  public static Literal literal(String text, DataType type) {
    if (text.isEmpty()) return new Literal(null, type);
    Object value = null;
    if (type instanceof LongType) value = Long.valueOf(text);
    if (type instanceof IntegerType || type instanceof DateType) value = Integer.valueOf(text);
    if (type instanceof ShortType) value = Short.valueOf(text);
    if (type instanceof ByteType) value = Byte.valueOf(text);
    if (value == null) throw new IllegalStateException(type.toString());
    return new Literal(value, type);
  }

  // -- limits -----------------------------------------------------------------------------------------------------------------

  private LogicalPlan limited(LocalLimit limit) {
    Chain chain = limit.limitExpr() instanceof Literal ? chain(limit.child()) : null;
    if (chain == null) return null;
    Object fewer = answer("limit", chain, ((Literal) limit.limitExpr()).value().toString(), chain.scan);
    return fewer == null ? null : (LogicalPlan) limit.transformUp(new Replaced(chain.scan, fewer));
  }

  private static scala.collection.immutable.Seq seq(List list) {
    return org.apache.spark.api.python.PythonUtils.toSeq(list);
  }

  // -- changes of nodes -------------------------------------------------------------------------------------------------------

  public static class Changed extends scala.runtime.AbstractPartialFunction {
    private final FromLog rule;
    public Changed(FromLog rule) { this.rule = rule; }
    public boolean isDefinedAt(Object node) { return node instanceof Aggregate || node instanceof LocalLimit; }
    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      Object other = rule.changed(node);
      return other == null ? otherwise.apply(node) : other;
    }
  }

  public static class Constants extends scala.runtime.AbstractPartialFunction {
    private final List functions;
    private final String[] values;
    public Constants(List functions, String[] values) { this.functions = functions; this.values = values; }
    public boolean isDefinedAt(Object node) { return node instanceof AggregateExpression; }
    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!(node instanceof AggregateExpression)) return otherwise.apply(node);
      return FromLog.literal(values[functions.indexOf(node)], ((AggregateExpression) node).dataType());
    }
  }

  public static class Replaced extends scala.runtime.AbstractPartialFunction {
    private final Object scan;
    private final Object other;
    public Replaced(Object scan, Object other) { this.scan = scan; this.other = other; }
    public boolean isDefinedAt(Object node) { return node == scan; }
    public Object applyOrElse(Object node, scala.Function1 otherwise) { return node == scan ? other : otherwise.apply(node); }
  }
}
