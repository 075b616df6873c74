"""References that reports cite: definitions of promises and proofs of bounds."""

from __future__ import annotations

__all__ = ["ESTIMATES", "REFERENCES", "SOFTWARE"]

# As CITATION.cff has it.
SOFTWARE = 'The plaudit authors, "plaudit: empirical privacy-loss audits of differentially private algorithms"'
REFERENCES = {
    "dwork": 'Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, definition 2.4 and theorem '
    "2.2 (groups).",
    "vadhan": 'Vadhan, "The Complexity of Differential Privacy", 2017, lemma 2.2 (groups).',
    "bun": 'Bun and Steinke, "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds", 2016, '
    "definition 1.1, lemma 2.2 and proposition 1.9.",
    "dong": 'Dong, Roth and Su, "Gaussian Differential Privacy", 2022, definition 2.6 and theorem 2.14.',
    "kairouz": 'Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", 2015, section 3.',
    "canonne": 'Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020, corollary 13.',
    "balle": 'Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", 2018, theorem 8.',
    "clopper": 'Clopper and Pearson, "The Use of Confidence or Fiducial Limits Illustrated in the Case of the '
    'Binomial", 1934.',
    "steinke": 'Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", 2023, theorem 5.2.',
    "mahloujifar": 'Mahloujifar, Melis and Chaudhuri, "Auditing f-Differential Privacy in One Run", 2024.',
    "liptak": 'Liptak, "On the Combination of Independent Tests", 1958.',
    "berger": 'Berger and Boos, "P Values Maximized over a Confidence Set for the Nuisance Parameter", 1994.',
    "ding": 'Ding, Wang, Wang, Zhang and Kifer, "Detecting Violations of Differential Privacy", 2018.',
    "nasr": "Nasr, Hayes, Steinke, Balle, Tramer, Jagielski, Carlini and Terzis, "
    '"Tight Auditing of Differentially Private Machine Learning", 2023.',
    "birrell": 'Birrell, Dupuis, Katsoulakis, Rey-Bellet and Wang, "Variational Representations and Neural Network '
    'Estimation of Renyi Divergences", 2021.',
    "robbins": 'Robbins, "Statistical Methods Related to the Law of the Iterated Logarithm", 1970, after Ville, 1939.',
    "waudby": 'Waudby-Smith and Ramdas, "Estimating Means of Bounded Random Variables by Betting", 2024.',
    "flaxman": 'Flaxman, "Empirical quantification of privacy loss with examples relevant to the 2020 US Census", '
    '2019, section 2.3, "less-obvious estimate".',
    "rubin": 'Rubin, "The Bayesian Bootstrap", Annals of Statistics 9(1), 1981, section 2.',
}

# Sources of the estimates.
ESTIMATES = ("flaxman", "rubin")
