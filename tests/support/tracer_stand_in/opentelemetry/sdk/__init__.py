"""What exports."""
