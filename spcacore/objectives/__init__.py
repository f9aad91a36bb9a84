"""What is maximized over supports: a file an objective, each by the contract of supports/objective."""
