"""Flaxman (2019): GDPC, RDPC and ADPC, and two estimates of their losses."""
