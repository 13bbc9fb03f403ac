"""The observers of operations (`tahoe.base.events`): log records, OpenTelemetry spans and OpenLineage events (docs/design/040)."""
