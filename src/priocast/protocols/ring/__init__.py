"""A token moves along a ring of members: moving sequencers, and the token ring."""
