"""The commands of `neardup`, one module per command. `cli` lists them."""
