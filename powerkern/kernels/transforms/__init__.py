"""Box-Cox, Yeo-Johnson and rectified transforms, their inverses, and their loops over arrays."""
