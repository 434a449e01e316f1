"""Resharding: migration of a deployment to another number of slices or owners."""
