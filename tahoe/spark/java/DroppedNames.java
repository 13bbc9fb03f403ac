package tahoe;

public class DroppedNames extends org.apache.spark.sql.catalyst.rules.Rule {
  private final scala.Function1 notify;

  public DroppedNames(scala.Function1 notify) { this.notify = notify; }

  public org.apache.spark.sql.catalyst.trees.TreeNode apply(org.apache.spark.sql.catalyst.trees.TreeNode plan) {
    String name = plan.nodeName();
    boolean isDrop = name.startsWith("DropTable") || name.startsWith("DropNamespace") || name.startsWith("DropDatabase")
      || name.startsWith("AlterTableRename");
    // The setting is read in the JVM: a session without a coordinator makes no call to Python.
    if (isDrop && !org.apache.spark.sql.internal.SQLConf.get().getConfString("{{coordinator}}", "").isEmpty())
      return (org.apache.spark.sql.catalyst.trees.TreeNode) notify.apply(plan);
    return plan;
  }
}
