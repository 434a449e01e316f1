"""The report of a pass: its counts, and their rendering as text, JSON and HTML."""
