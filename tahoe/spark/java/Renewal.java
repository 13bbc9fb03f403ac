package tahoe;

public class Renewal extends org.apache.spark.sql.catalyst.rules.Rule {
  private final scala.Function5 renew;

  public Renewal(scala.Function5 renew) { this.renew = renew; }

  public org.apache.spark.sql.catalyst.trees.TreeNode apply(org.apache.spark.sql.catalyst.trees.TreeNode plan) {
    java.util.TreeSet scans = new java.util.TreeSet();
    scala.collection.Iterator leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext()) {
      Object leaf = leaves.next();
      if (leaf instanceof org.apache.spark.sql.execution.datasources.LogicalRelation) {
        Object relation = ((org.apache.spark.sql.execution.datasources.LogicalRelation) leaf).relation();
        if (relation instanceof org.apache.spark.sql.execution.datasources.HadoopFsRelation) {
          Object index = ((org.apache.spark.sql.execution.datasources.HadoopFsRelation) relation).location();
          if (index.getClass().getName().equals("tahoe.LogFiles")) scans.add(index.toString());
        }
      }
    }
    if (scans.isEmpty()) return plan;
    scala.Option tracker = org.apache.spark.sql.catalyst.QueryPlanningTracker.get();
    Object query = tracker.isEmpty() ? null : tracker.get();
    String write = org.apache.spark.SparkContext.getOrCreate().getLocalProperty("{{transaction}}");
    return (org.apache.spark.sql.catalyst.trees.TreeNode)
        renew.apply(plan, String.join("\n", scans), query, Integer.valueOf(System.identityHashCode(query)), write);
  }
}
