"""A federated fit as a Flower app."""
