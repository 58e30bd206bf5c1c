"""Box-Cox, Yeo-Johnson and rectified transforms, their inverses, and loops that apply them to arrays."""
