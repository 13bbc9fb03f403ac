package tahoe;

import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.planning.ScanOperation;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.*;
import org.apache.spark.sql.execution.datasources.*;

// Plans the scans whose files Spark cannot open: Python returns a physical plan with the columns that the query needs.
public class PythonScans extends SparkStrategy {
  private final scala.Function5 rows;
  private final scala.Function1 refuse;

  public PythonScans(scala.Function5 rows, scala.Function1 refuse) {
    this.rows = rows;
    this.refuse = refuse;
  }

  private static scala.collection.immutable.Seq seq(java.util.List items) {
    return (scala.collection.immutable.Seq) org.apache.spark.api.python.PythonUtils.toSeq(items);
  }

  public scala.collection.immutable.Seq apply(LogicalPlan plan) {
    java.util.List plans = new java.util.ArrayList();
    if (usesInputFile(plan.expressions())) refuseInputFile(plan);
    scala.Option matched = ScanOperation.unapply(plan);
    if (!matched.isEmpty()) {
      scala.Tuple4 parts = (scala.Tuple4) matched.get();
      if (isInPython(parts._4()))
        plans.add(planned(
            (scala.collection.immutable.Seq) parts._1(), (scala.collection.immutable.Seq) parts._2(),
            (scala.collection.immutable.Seq) parts._3(), (LogicalRelation) parts._4()));
    }
    return seq(plans);
  }

  // Spark's reader of Parquet sets these values of a thread; a Python worker cannot.
  private static boolean usesInputFile(scala.collection.immutable.Seq expressions) {
    for (scala.collection.Iterator each = expressions.iterator(); each.hasNext();) {
      Expression expression = (Expression) each.next();
      if (expression instanceof InputFileName || expression instanceof InputFileBlockStart || expression instanceof InputFileBlockLength)
        return true;
      if (usesInputFile(expression.children())) return true;
    }
    return false;
  }

  private void refuseInputFile(LogicalPlan plan) {
    for (scala.collection.Iterator each = plan.collectLeaves().iterator(); each.hasNext();) {
      Object leaf = each.next();
      if (isInPython(leaf)) refused((HadoopFsRelation) ((LogicalRelation) leaf).relation());
    }
  }

  private void refused(HadoopFsRelation relation) {
    try {
      refuse.apply(relation.location().toString());
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
    }
  }

  private static boolean isInPython(Object leaf) {
    if (!(leaf instanceof LogicalRelation)) return false;
    Object relation = ((LogicalRelation) leaf).relation();
    return relation instanceof HadoopFsRelation && ((HadoopFsRelation) relation).options().contains("{{option}}");
  }

  private SparkPlan planned(
      scala.collection.immutable.Seq projects, scala.collection.immutable.Seq above, scala.collection.immutable.Seq filters,
      LogicalRelation leaf) {
    HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
    java.util.Set needed = new java.util.HashSet();
    addReferences(projects, needed);
    addReferences(above, needed);
    java.util.List conditions = new java.util.ArrayList();
    for (scala.collection.Iterator each = filters.iterator(); each.hasNext();) {
      Expression filter = (Expression) each.next();
      // A dynamic pruning filter only saves reads.
      if (!(filter instanceof DynamicPruning)) conditions.add(filter);
    }
    addReferences(seq(conditions), needed);
    java.util.List columns = new java.util.ArrayList();
    for (scala.collection.Iterator each = leaf.output().iterator(); each.hasNext();) {
      Attribute column = (Attribute) each.next();
      if (needed.contains(column.exprId())) columns.add(column);
    }
    SparkPlan scan = named(rowsOf(relation, columns, DataSourceStrategy$.MODULE$.normalizeExprs(seq(conditions), leaf.output())), columns);
    SparkPlan filtered = filtered(scan, seq(conditions));
    boolean isWhole = projects.size() == columns.size();
    for (int i = 0; isWhole && i < columns.size(); i++) isWhole = projects.apply(i) == columns.get(i);
    return filtered(isWhole ? filtered : new ProjectExec(projects, filtered), above);
  }

  private static void addReferences(scala.collection.immutable.Seq expressions, java.util.Set ids) {
    for (scala.collection.Iterator each = expressions.iterator(); each.hasNext();)
      for (scala.collection.Iterator names = ((Expression) each.next()).references().iterator(); names.hasNext();)
        ids.add(((Attribute) names.next()).exprId());
  }

  private SparkPlan rowsOf(HadoopFsRelation relation, java.util.List columns, scala.collection.immutable.Seq filters) {
    java.util.List names = java.util.Arrays.asList(relation.partitionSchema().fieldNames());
    java.util.List ofPartitions = new java.util.ArrayList();
    java.util.List ofData = new java.util.ArrayList();
    for (scala.collection.Iterator each = filters.iterator(); each.hasNext();) {
      Expression filter = (Expression) each.next();
      if (SubqueryExpression.hasSubquery(filter)) continue;
      (isOf(filter, names) ? ofPartitions : ofData).add(filter);
    }
    String schema = DataTypeUtils.fromAttributes(seq(columns)).json();
    String texts = texts(ofPartitions) + "\n" + texts(ofData);
    try {
      return (SparkPlan) rows.apply(relation.location().toString(), schema, seq(ofPartitions), seq(ofData), texts);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
      return null;
    }
  }

  private static boolean isOf(Expression filter, java.util.List names) {
    for (scala.collection.Iterator each = filter.references().iterator(); each.hasNext();) {
      Attribute column = (Attribute) each.next();
      if (!names.contains(column.name())) return false;
    }
    return true;
  }

  private static String texts(java.util.List filters) {
    StringBuilder all = new StringBuilder();
    for (int i = 0; i < filters.size(); i++) all.append(i == 0 ? "" : "\t").append(((Expression) filters.get(i)).toJSON());
    return all.toString();
  }

  // The plan's columns are in this order. They get the identities that the rest of the query refers to.
  private static SparkPlan named(SparkPlan plan, java.util.List columns) {
    java.util.List output = new java.util.ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = (Attribute) columns.get(i);
      output.add(((Attribute) plan.output().apply(i)).withExprId(column.exprId()).withQualifier(column.qualifier()));
    }
    if (columns.size() < plan.output().size()) output.add(plan.output().apply(columns.size()));
    Object[] parts = new Object[plan.productArity()];
    for (int i = 0; i < parts.length; i++) parts[i] = plan.productElement(i) == plan.output() ? seq(output) : plan.productElement(i);
    return (SparkPlan) plan.makeCopy(parts);
  }

  private static SparkPlan filtered(SparkPlan plan, scala.collection.immutable.Seq conditions) {
    Expression all = null;
    for (scala.collection.Iterator each = conditions.iterator(); each.hasNext();) {
      Expression condition = (Expression) each.next();
      all = all == null ? condition : new And(all, condition);
    }
    return all == null ? plan : new FilterExec(all, plan);
  }
}
