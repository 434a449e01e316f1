"""The stage interface, and the runner that feeds the stages of a worker from the log."""
