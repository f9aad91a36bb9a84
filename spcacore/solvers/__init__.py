"""One sparse component: each solver in a file of its own, and what they share."""
