"""M-estimators and other robust estimators of location and scale of one column."""
