"""Table features of an existing table: dropping a feature, and the engines that can read and write the table."""
