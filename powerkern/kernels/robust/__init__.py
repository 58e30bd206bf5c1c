"""Order statistics, Huber and bisquare estimators, and robust fits of lambda."""
