"""Which supports are allowed, what is maximized over them, and the searches: each written once for all.

`admissible` has the record of supports, `objective` the contract of what is maximized, `search` the forward,
backward and swap searches, and `tree` the proof by branch and bound.
"""
