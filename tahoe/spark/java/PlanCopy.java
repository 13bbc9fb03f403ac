package tahoe;

import java.util.*;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

public class PlanCopy {
  public PlanCopy() {}

  public Object copy(Object plan) { return copied((LogicalPlan) plan, new HashMap()); }

  public Object namedCopy(Object plan) { return new Named(new AliasIdentifier("delta"), (LogicalPlan) copy(plan)); }

  public String settings(Object session, String names) {
    List values = new ArrayList();
    for (String name : names.split("\0")) values.add(((org.apache.spark.sql.SparkSession) session).conf().get(name, null));
    return String.join("\0", values);
  }

  // Spark 4.0 looks for `_metadata` below an alias only if its child is a scan or another alias.
  public static class Named extends SubqueryAlias {
    // With the constructor arguments of the superclass, which Spark uses to make copies.
    public Named(AliasIdentifier name, LogicalPlan plan) { super(name, plan); }
    public scala.collection.immutable.Seq metadataOutput() { return child().metadataOutput(); }
  }

  // The names of the visited columns, and their replacements.
  private static LogicalPlan copied(LogicalPlan plan, Map names) {
    if (plan instanceof LogicalRelation) return relation((LogicalRelation) plan, names);
    List children = new ArrayList();
    for (scala.collection.Iterator each = plan.children().iterator(); each.hasNext();)
      children.add(copied((LogicalPlan) each.next(), names));
    LogicalPlan copy = children.isEmpty() ? plan : (LogicalPlan) plan.withNewChildren(seq(children));
    copy = (LogicalPlan) copy.transformExpressionsUp(new Renamed(names));
    if (copy instanceof Project) {
      TreeNodeTag tag = Project$.MODULE$.hiddenOutputTag();
      scala.Option hidden = plan.getTagValue(tag);
      if (hidden.isDefined()) copy.setTagValue(tag, renamed((scala.collection.Iterable) hidden.get(), names));
    }
    return copy;
  }

  private static LogicalPlan relation(LogicalRelation scan, Map names) {
    LogicalRelation copy = (LogicalRelation) scan.newInstance();
    addPairs(scan.metadataOutput(), copy.metadataOutput(), names);
    addPairs(scan.output(), copy.output(), names);
    return copy;
  }

  private static void addPairs(scala.collection.Iterable old, scala.collection.Iterable copies, Map names) {
    scala.collection.Iterator copy = copies.iterator();
    for (scala.collection.Iterator each = old.iterator(); each.hasNext() && copy.hasNext();)
      names.put(((Attribute) each.next()).exprId(), ((Attribute) copy.next()).exprId());
  }

  private static scala.collection.immutable.Seq renamed(scala.collection.Iterable attributes, Map names) {
    List list = new ArrayList();
    Renamed renamed = new Renamed(names);
    for (scala.collection.Iterator each = attributes.iterator(); each.hasNext();)
      list.add(((Expression) each.next()).transformUp(renamed));
    return seq(list);
  }

  private static scala.collection.immutable.Seq seq(List list) {
    return org.apache.spark.api.python.PythonUtils.toSeq(list);
  }

  public static class Renamed extends scala.runtime.AbstractPartialFunction {
    private final Map names;
    public Renamed(Map names) { this.names = names; }
    public boolean isDefinedAt(Object node) {
      return node instanceof Alias || node instanceof AttributeReference && names.containsKey(((AttributeReference) node).exprId());
    }
    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      if (node instanceof AttributeReference) {
        AttributeReference column = (AttributeReference) node;
        return column.withExprId((ExprId) names.get(column.exprId()));
      }
      NamedExpression copy = ((Alias) node).newInstance();
      names.put(((Alias) node).exprId(), copy.exprId());
      return copy;
    }
  }
}
