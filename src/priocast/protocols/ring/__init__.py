"""A token goes round a ring of members: moving sequencers, and the token ring."""
