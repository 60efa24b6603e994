"""Models that can be measured, and the built-in trained one."""
