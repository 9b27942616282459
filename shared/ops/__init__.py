"""The table of operations: each declared once, shown by every face."""
