"""The pilot of the Office for National Statistics: its noise, its tables and its zeros."""
