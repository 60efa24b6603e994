"""The themes, one TOML file each; data only."""
