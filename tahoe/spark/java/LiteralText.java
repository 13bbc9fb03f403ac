package tahoe;

// The value stays in the JVM: py4j would return a long that fits an int as an int.
public class LiteralText {
  private final org.apache.spark.sql.connector.expressions.LiteralValue literal;

  public LiteralText(Object literal) {
    this.literal = (org.apache.spark.sql.connector.expressions.LiteralValue) literal;
  }

  public String toString() {
    return new org.apache.spark.sql.catalyst.expressions.Literal(literal.value(), literal.dataType()).sql();
  }
}
