"""The measuring process: reads commands, times the model, answers with raw figures."""
