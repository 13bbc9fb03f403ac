"""Writers other than Tahoe on the Iceberg side: detecting their changes, and discarding them or adopting their rows."""
