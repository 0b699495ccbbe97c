"""The playground: a simulated group that somebody steers by hand, in a browser or anywhere else.

`link` is what determines a run, as the text of a link; `playground` steers the simulator; `messages` follows
each message, `snapshot` is what a page shows, and `bridge` is what the page in a browser calls.
"""
