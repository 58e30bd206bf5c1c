"""Maximum likelihood from sums of powers of logs in bins. Data are read once; the sums of parts of them are added."""
