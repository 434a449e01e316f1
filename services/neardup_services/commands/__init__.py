"""The commands of `neardup`, one a file. The group that holds them is in `cli.py`."""
