"""Other systems that order messages for all members, side by side with ours: `make peers`."""
