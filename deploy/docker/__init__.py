"""The image: its Dockerfile, and its size by package."""
