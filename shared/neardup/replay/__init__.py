"""What other settings would have decided: the documents of a state once more through the stages, and what differs.

recorded (or read anew from pages) → in_turn → outcome → differences → labelling
"""
