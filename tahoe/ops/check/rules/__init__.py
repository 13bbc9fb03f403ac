"""The rules, one small function each, under the headings of PROTOCOL.md."""
