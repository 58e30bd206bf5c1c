"""Models of powerkern.regression and powerkern.joint: designs, likelihoods and fitted models."""
