"""What is maximized over supports: a file for each objective, by the contract of supports/objective."""
