"""Known bugs: mechanisms that do not keep their promise, each with its true loss.

References
----------
A bug without a source in this list comes from an issue or MITRE's list of weaknesses (CWE), or is our own.

.. [1] Bun and Steinke, "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds", 2016.
.. [2] Casacuberta, Shoemate, Vadhan and Wagaman, "Widespread Underestimation of Sensitivity in Differentially Private
   Libraries and How to Fix It", 2022.
.. [3] Cebere, Erb, Desfontaines, Bellet and Fitzsimons, "Privacy in Theory, Bugs in Practice: Grey-Box Auditing of
   Differential Privacy Libraries", 2026 (arXiv 2602.17454): 13 violations found, and the replays.
.. [4] Ding, Wang, Wang, Zhang and Kifer, "Detecting Violations of Differential Privacy", 2018: scale errors are the
   commonest bugs of released mechanisms.
.. [5] Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014: composition (theorems 3.14, 3.16)
   and post-processing (proposition 2.1).
.. [6] Flaxman, "Empirical quantification of privacy loss with examples relevant to the 2020 US Census", 2019, and its
   replication notebook.
.. [7] Gadotti, Houssiau, Rocher, Livshits and de Montjoye, "When the Signal is in the Noise: Exploiting Diffix's Sticky
   Noise", 2019.
.. [8] Haeberlen, Pierce and Narayan, "Differential Privacy Under Fire", 2011: running time as a channel.
.. [9] Holohan, Antonatos, Braghin and Mac Aonghusa, "The Bounded Laplace Mechanism in Differential Privacy", 2020:
   noise drawn again until it fits needs a larger scale.
.. [10] Holohan, Braghin, Mac Aonghusa and Levacher, "Diffprivlib: the IBM Differential Privacy Library", 2019: bounds
   are taken from the data where none are given, with a warning.
.. [11] Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing Search Queries and Clicks Privately", 2009: the existence
   of a row reveals a person.
.. [12] Mironov, "On Significance of the Least Significant Bits for Differential Privacy", 2012.
.. [13] Nissim, Raskhodnikova and Smith, "Smooth Sensitivity and Sampling in Private Data Analysis", 2007: a magnitude
   of noise that depends on the data reveals something about them.
.. [14] Thompson, Broadfoot and Elazar, "Methodology for the Automatic Confidentialisation of Statistical Outputs from
   Remote Servers at the Australian Bureau of Statistics", 2013: noise by keys of the records.
"""

from __future__ import annotations

from algorithms.bugs.bug import KnownBug
from algorithms.bugs.known import KNOWN

__all__ = ["KnownBug", "known_bugs"]


def known_bugs() -> dict[str, KnownBug]:
    """Return the known bugs by name, each with a pair of databases that shows it, its loss on them and how it is found.

    Examples
    --------
    >>> bug = known_bugs()["rounded-first"]
    >>> bug.x, bug.y, bug.mechanism.claim.epsilon, bug.loss
    (array([2, 8]), array([3, 8]), 0.5, 2.5)
    """
    return dict(KNOWN)
