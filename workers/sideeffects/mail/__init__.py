"""Mail: the port, what a letter is made into, and the SMTP adapter."""
