"""Other writers on the Iceberg side: looked for before every conversion; then left out, or their rows taken over."""
