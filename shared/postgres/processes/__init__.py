"""Process rows: who runs, whether it lives, how its stop went."""
