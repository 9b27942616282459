"""The actions of `weirkeeper webhooks`, one a file: each adds its arguments and runs itself."""
