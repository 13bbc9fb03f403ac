"""Where readers find the newest metadata: one port, one module for each kind of catalog."""
