package tahoe;

import java.util.*;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;

// Between a proxy and Python: adds the text of the table's name and entry, which Python would otherwise read in 20 calls for each table.
// The entry of a Delta table replaces the identifier, so that the text and Python's answer describe the same entry.
// It also answers whether a table exists, and drops Delta tables. For both, Spark's own catalog would load the class of the format, which
// it finds for "delta" only if the workers' Python has Tahoe; starting that Python takes a second.
public class TableNames extends scala.runtime.AbstractFunction6 {
  private static final int MOST_ENTRIES = 256;
  private static final Set DROPS = new HashSet(Arrays.asList("dropTable", "purgeTable"));
  private final scala.Function6 answers;
  private final SessionCatalog entries;
  private final Object newest;
  private final Map numbers = new HashMap();
  private long last = 0;

  // newest: the TableContext that requests the newest version; null before Spark 4.3.
  public TableNames(Object answers, Object entries, Object newest) {
    this.answers = (scala.Function6) answers;
    this.entries = (SessionCatalog) entries;
    this.newest = newest;
  }

  public Object apply(Object method, Object count, Object a, Object b, Object c, Object d) {
    int arguments = ((Number) count).intValue();
    if (newest != null && newest.equals(b)) arguments = 1;
    String text;
    Object subject = a;
    try {
      if (a instanceof Identifier) {
        TableIdentifier name = nameOf((Identifier) a);
        if (name != null && "tableExists".equals(method)) return Boolean.valueOf(entries.tableExists(name));
        CatalogTable entry = name == null ? null : deltaEntry(name);
        if (entry != null && DROPS.contains(method)) {
          entries.invalidateCachedTable(name);
          entries.dropTable(name, true, "purgeTable".equals(method));
          return Boolean.TRUE;
        }
        text = described((Identifier) a, entry);
        if (entry != null) subject = entry;
      } else {
        text = ((scala.Product) a).productIterator().mkString("\0");
      }
    } catch (Exception error) {
      org.apache.spark.unsafe.Platform.throwException(error);
      return null;
    }
    return answers.apply(method, Integer.valueOf(arguments + 1), text, subject, arguments == 1 ? null : b, c);
  }

  // The name of an entry; null for a path, and for a name that no entry can have.
  private static TableIdentifier nameOf(Identifier name) {
    if (name.namespace().length != 1 || name.name().indexOf('/') >= 0) return null;
    return new TableIdentifier(name.name(), scala.Option.apply(name.namespace()[0]), scala.Option.apply(null));
  }

  // The catalog's entry of a Delta table; null without one.
  private CatalogTable deltaEntry(TableIdentifier name) throws Exception {
    if (!entries.tableExists(name)) return null;
    CatalogTable entry = entries.getTableMetadata(name);
    boolean isDelta = entry.provider().isDefined() && "delta".equalsIgnoreCase((String) entry.provider().get());
    return isDelta ? entry : null;
  }

  // The entry's number, which equal entries share, the location, and the parts of the name; without an entry 0 and no location.
  private String described(Identifier name, CatalogTable entry) {
    List parts = new ArrayList(Arrays.asList(name.namespace()));
    parts.add(name.name());
    String text = String.join("\0", parts);
    return entry == null ? "0\1\1" + text : number(text, entry) + "\1" + entry.location() + "\1" + text;
  }

  private synchronized long number(String name, CatalogTable entry) {
    Object[] known = (Object[]) numbers.get(name);
    if (known != null && entry.equals(known[0])) return ((Number) known[1]).longValue();
    if (numbers.size() >= MOST_ENTRIES) numbers.clear();
    numbers.put(name, new Object[] {entry, Long.valueOf(++last)});
    return last;
  }
}
