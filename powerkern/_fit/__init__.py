"""`fit`, and the choice of a family."""
