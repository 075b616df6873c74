"""A count without any package, for `record_outputs.py`."""

import math
import random


def noisy_count(people):
    """Count people of 65 or older, with geometric noise: epsilon 1 for one person added or removed."""
    count = sum(person["age"] >= 65 for person in people)
    for sign in (1, -1):
        while random.SystemRandom().random() < math.exp(-1):
            count += sign
    return count
