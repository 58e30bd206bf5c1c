"""Power transforms with lambdas that maximize the score of a classifier or regressor [1]_.

References
----------
.. [1] L. Blum, M. Elgendi, C. Menon, "Impact of Box-Cox transformation on machine-learning algorithms", Frontiers in
   Artificial Intelligence 5, 2022, 877569.
"""
