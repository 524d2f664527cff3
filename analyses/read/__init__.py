"""What a model holds and says: states, answers, gates and attention, loop by loop."""
