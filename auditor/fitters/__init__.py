"""Fitters: one sample in, one density out, with its goodness of fit.

>>> import numpy as np
>>> fit_gaussian(np.array([0.0, 2.0])).sd
1.0
"""

from auditor.fitters.gaussian import Gaussian, fit_gaussian, fit_gaussian_pair
from auditor.fitters.goodness_of_fit import held_out_ks, held_out_test
from auditor.fitters.mixture import MixtureOfGaussians
from auditor.fitters.mixture_choice import fit_mixture_pair
from auditor.fitters.mixture_fit import fit_mixture

__all__ = [
    "Gaussian",
    "MixtureOfGaussians",
    "fit_gaussian",
    "fit_gaussian_pair",
    "fit_mixture",
    "fit_mixture_pair",
    "held_out_ks",
    "held_out_test",
]
