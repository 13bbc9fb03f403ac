package tahoe;

import java.io.FileNotFoundException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;

public class HadoopFiles {
  private final Configuration configuration;
  private final boolean separate;
  private FileSystem own;

  public HadoopFiles(Configuration configuration, boolean separate) {
    this.configuration = configuration;
    this.separate = separate;
  }

  // Hadoop shares one connection for each user and host, whatever the configuration: settings of its own need a separate one.
  private synchronized FileSystem system(Path path) throws Exception {
    if (!separate) return path.getFileSystem(configuration);
    if (own == null) own = FileSystem.newInstance(path.toUri(), configuration);
    return own;
  }

  // One text, because each entry of an array takes Python several calls. No name contains NUL.
  public String list(String folder) throws Exception {
    Path path = new Path(folder);
    FileStatus[] entries;
    try {
      if (!system(path).getFileStatus(path).isDirectory()) return "";
      entries = system(path).listStatus(path);
    } catch (FileNotFoundException error) {
      return "";
    }
    StringBuilder all = new StringBuilder();
    for (int i = 0; i < entries.length; i++) all.append(text(entries[i])).append('\0').append(entries[i].getPath().getName()).append('\0');
    return all.toString();
  }

  public String status(String file) throws Exception {
    Path path = new Path(file);
    try {
      return text(system(path).getFileStatus(path));
    } catch (FileNotFoundException error) {
      return null;
    }
  }

  private static String text(FileStatus status) {
    return (status.isDirectory() ? "folder" : "file") + "\0" + status.getLen() + "\0" + status.getModificationTime();
  }

  public byte[] read(String file, long start, int length) throws Exception {
    Path path = new Path(file);
    byte[] bytes = new byte[length];
    FSDataInputStream stream = system(path).open(path);
    try {
      stream.readFully(start, bytes);
    } finally {
      stream.close();
    }
    return bytes;
  }

  public void write(String file, byte[] bytes) throws Exception {
    Path path = new Path(file);
    FSDataOutputStream stream = system(path).create(path, false);
    try {
      stream.write(bytes);
    } finally {
      stream.close();
    }
  }

  public void upload(String local, String file) throws Exception {
    Path path = new Path(file);
    system(path).copyFromLocalFile(false, false, new Path("file://" + local), path);
  }

  // Whether the target was free, which the file system decides for one caller only.
  public boolean rename(String source, String target, boolean overwrite) throws Exception {
    Path path = new Path(target);
    Options.Rename mode = overwrite ? Options.Rename.OVERWRITE : Options.Rename.NONE;
    try {
      FileContext.getFileContext(path.toUri(), configuration).rename(new Path(source), path, new Options.Rename[] {mode});
      return true;
    } catch (FileAlreadyExistsException error) {
      return false;
    }
  }

  public void delete(String file) throws Exception {
    Path path = new Path(file);
    system(path).delete(path, false);
  }
}
