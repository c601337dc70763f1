"""Client profiles, one file per client; discovered by listing the folder."""
