"""Other writers on the Iceberg side: looked for before every conversion, and settled."""
