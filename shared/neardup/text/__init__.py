"""Text extraction: the steps from the bytes of a page to its canonical tokens."""
