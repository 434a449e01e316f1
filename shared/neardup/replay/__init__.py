"""Replay of recorded documents under other settings, and the differences between both outcomes.

recorded documents or pages → in_turn → outcome → differences → labelling
"""
