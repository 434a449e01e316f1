"""The duplicate decision: comparison of two pages, the rule applied to the result, and its explanation."""
