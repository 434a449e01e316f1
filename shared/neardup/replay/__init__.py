"""Replay of the documents of a state under other settings, and the differences between both outcomes.

recorded documents or pages → in_turn → outcome → differences → labelling
"""
