"""Result files of a pass, and the messages that publish the differences from the previous pass."""
