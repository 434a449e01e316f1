"""The services: Faust applications that run the stages of neardup, and the command line. No algorithms."""
