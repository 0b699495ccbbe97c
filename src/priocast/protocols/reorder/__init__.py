"""Queue re-ordering: an urgent message overtakes what is queued and not consumed."""
