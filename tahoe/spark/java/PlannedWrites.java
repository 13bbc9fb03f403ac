package tahoe;

public class PlannedWrites extends org.apache.spark.sql.catalyst.rules.Rule {
  private final scala.Function1 planWrite;

  public PlannedWrites(scala.Function1 planWrite) { this.planWrite = planWrite; }

  public org.apache.spark.sql.catalyst.trees.TreeNode apply(org.apache.spark.sql.catalyst.trees.TreeNode plan) {
    if (plan instanceof org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand)
      return (org.apache.spark.sql.catalyst.trees.TreeNode) planWrite.apply(plan);
    if (plan instanceof org.apache.spark.sql.catalyst.plans.logical.Union
        && plan.children().head() instanceof org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand)
      return plan.mapChildren(planWrite);  // FROM … INSERT … INSERT …
    return plan;
  }
}
