package tahoe;

import java.util.*;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.types.*;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

// The changes of a Delta table, as a catalog of Spark 4.2 and later returns them: the rows of a DataFrame over the change data feed. The
// feed records updates and has no rows that were merely copied, so Spark computes nothing from the rows.
public class RecordedChanges implements Changelog {
  private final String name;
  private final StructType schema;
  private final scala.Function1 rows;

  // rows: returns the DataFrame for the options of a scan.
  public RecordedChanges(String name, StructType schema, scala.Function1 rows) {
    this.name = name;
    this.schema = schema;
    this.rows = rows;
  }

  public String name() { return name; }
  public org.apache.spark.sql.connector.catalog.Column[] columns() { return new SchemaTable(schema).columns(); }
  public boolean containsCarryoverRows() { return false; }
  public boolean containsIntermediateChanges() { return false; }
  public boolean representsUpdateAsDeleteAndInsert() { return false; }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    try {
      return new ChangesScan(name, (org.apache.spark.sql.classic.Dataset) rows.apply(options));
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
      return null;
    }
  }

  // Spark converts the schema of a table to columns, by methods that differ between versions.
  public static class SchemaTable implements Table {
    private final StructType schema;

    SchemaTable(StructType schema) { this.schema = schema; }

    public String name() { return "changes"; }
    public StructType schema() { return schema; }
    public Set capabilities() { return Collections.emptySet(); }
  }

  public static class ChangesScan implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownFilters, V1Scan {
    private final String name;
    private org.apache.spark.sql.classic.Dataset rows;
    private StructType columns;
    private Filter[] pushed = new Filter[0];

    ChangesScan(String name, org.apache.spark.sql.classic.Dataset rows) {
      this.name = name;
      this.rows = rows;
      this.columns = rows.schema();
    }

    // Spark evaluates all filters again; those that have a condition here let the scan of the files skip some.
    public Filter[] pushFilters(Filter[] filters) {
      List known = new ArrayList();
      for (int i = 0; i < filters.length; i++) {
        Column condition = condition(filters[i]);
        if (condition == null) continue;
        known.add(filters[i]);
        Object kept = rows.where(condition);
        rows = (org.apache.spark.sql.classic.Dataset) kept;
      }
      pushed = (Filter[]) known.toArray(new Filter[0]);
      return filters;
    }

    public Filter[] pushedFilters() { return pushed; }

    private Column condition(Filter filter) {
      if (filter instanceof And) return both(condition(((And) filter).left()), condition(((And) filter).right()));
      if (filter instanceof Or) {
        Column left = condition(((Or) filter).left()), right = condition(((Or) filter).right());
        return left == null || right == null ? null : left.or(right);
      }
      if (filter instanceof EqualTo) return rows.col(((EqualTo) filter).attribute()).equalTo(((EqualTo) filter).value());
      if (filter instanceof LessThan) return rows.col(((LessThan) filter).attribute()).lt(((LessThan) filter).value());
      if (filter instanceof GreaterThan) return rows.col(((GreaterThan) filter).attribute()).gt(((GreaterThan) filter).value());
      if (filter instanceof LessThanOrEqual)
        return rows.col(((LessThanOrEqual) filter).attribute()).leq(((LessThanOrEqual) filter).value());
      if (filter instanceof GreaterThanOrEqual)
        return rows.col(((GreaterThanOrEqual) filter).attribute()).geq(((GreaterThanOrEqual) filter).value());
      if (filter instanceof In) return rows.col(((In) filter).attribute()).isin(((In) filter).values());
      if (filter instanceof IsNull) return rows.col(((IsNull) filter).attribute()).isNull();
      if (filter instanceof IsNotNull) return rows.col(((IsNotNull) filter).attribute()).isNotNull();
      return null;
    }

    private static Column both(Column left, Column right) {
      if (left == null || right == null) return left == null ? right : left;
      return left.and(right);
    }

    // Top-level columns only: a struct is read whole.
    public void pruneColumns(StructType required) {
      Set names = new HashSet(Arrays.asList(required.fieldNames()));
      List fields = new ArrayList();
      StructField[] all = rows.schema().fields();
      for (int i = 0; i < all.length; i++) if (names.contains(all[i].name())) fields.add(all[i]);
      columns = new StructType((StructField[]) fields.toArray(new StructField[0]));
    }

    public Scan build() { return this; }
    public StructType readSchema() { return columns; }
    public String description() { return "changes of " + name; }
    public BaseRelation toV1TableScan(SQLContext context) { return new ChangesRelation(context, name, rows, columns); }
  }

  public static class ChangesRelation extends BaseRelation implements TableScan {
    private final SQLContext context;
    private final String name;
    private final org.apache.spark.sql.classic.Dataset rows;
    private final StructType columns;

    ChangesRelation(SQLContext context, String name, org.apache.spark.sql.classic.Dataset rows, StructType columns) {
      this.context = context;
      this.name = name;
      this.rows = rows;
      this.columns = columns;
    }

    public SQLContext sqlContext() { return context; }
    public StructType schema() { return columns; }
    public boolean needConversion() { return false; }
    public String toString() { return "changes of " + name; }

    // The rows as the scan of the files makes them, which need no conversion.
    public RDD buildScan() {
      List selected = new ArrayList();
      String[] names = columns.fieldNames();
      for (int i = 0; i < names.length; i++) selected.add(rows.col("`" + names[i].replace("`", "``") + "`"));
      Object chosen = rows.select(org.apache.spark.api.python.PythonUtils.toSeq(selected));
      return ((org.apache.spark.sql.classic.Dataset) chosen).queryExecution().toRdd();
    }
  }
}
