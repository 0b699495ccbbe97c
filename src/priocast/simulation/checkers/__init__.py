"""The checkers of a run: each checks one guarantee, from the records of what the members did."""
