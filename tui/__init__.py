"""Shows: the command line and the terminal interface. Reaches the engine through `tui.runner` and the engine's pure modules."""
