package tahoe;

public class TableCommand extends org.apache.spark.sql.execution.command.ExternalCommandExecutor {
  private final scala.collection.immutable.Seq values;
  private final scala.collection.immutable.Seq output;
  private final scala.Function1 rows;

  public TableCommand(
      org.apache.spark.sql.connector.ExternalCommandRunner runner,
      String command,
      scala.collection.immutable.Map options,
      scala.collection.immutable.Seq values,
      scala.collection.immutable.Seq output,
      scala.Function1 rows) {
    super(runner, command, options);
    this.values = values;
    this.output = output;
    this.rows = rows;
  }

  public scala.collection.immutable.Seq output() { return output; }

  public int productArity() { return 4; }

  public Object productElement(int position) { return position == 3 ? values : super.productElement(position); }

  public scala.collection.immutable.Seq run(org.apache.spark.sql.SparkSession session) {
    try {
      return (scala.collection.immutable.Seq) rows.apply(values);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
      return null;
    }
  }

  public scala.collection.immutable.Seq otherCopyArgs() {
    return ((scala.collection.immutable.List) scala.collection.immutable.Nil$.MODULE$.$colon$colon(rows)).$colon$colon(output);
  }
}
