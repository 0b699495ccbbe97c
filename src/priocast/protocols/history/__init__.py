"""Communication history: every member derives the order from what all members have sent."""
