package tahoe;

public class RawCommands extends org.apache.spark.sql.catalyst.rules.Rule {
  private final scala.Function1 check;

  public RawCommands(scala.Function1 check) { this.check = check; }

  public org.apache.spark.sql.catalyst.trees.TreeNode apply(org.apache.spark.sql.catalyst.trees.TreeNode plan) {
    String name = plan.nodeName();
    if (name.startsWith("AlterTable") || name.startsWith("TruncateTable"))
      return (org.apache.spark.sql.catalyst.trees.TreeNode) check.apply(plan);
    return plan;
  }
}
