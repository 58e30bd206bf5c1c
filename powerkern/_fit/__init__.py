"""`fit`, and the choice between the two families."""
