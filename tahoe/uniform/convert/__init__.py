"""From Delta commits to Iceberg snapshots: plan, build, write, in the background; and what is deleted afterwards."""
