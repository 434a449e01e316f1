"""The services: Faust apps around the stages of neardup, and the command line. Wiring, no maths."""
