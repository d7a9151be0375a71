"""Kernels from basis functions, k(x, x') = sum_m phi_m(x) phi_m(x').

Top row: three bases on an interval (monomials, Gaussians, logistic sigmoids).  Bottom row: their
kernels as functions of x for two fixed x', each marked by a cross (as in figure 6.1 of Bishop's
book).  What to look for:

* For monomials, k(x, 0) is constant, because all of them except the first are 0 at x' = 0.
  k(x, -0.5) is not constant, but it is largest at the left end, not at x'.
* For Gaussians, which cover the whole interval, the kernel has a maximum at x'.
* For sigmoids, the kernel is large where many of them are close to 1, both at x and at x'.

The figure is saved as ``out/kernels_from_bases.png``.
"""

# %% Three bases.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import Features, GaussianBasis, PolynomialBasis, SigmoidBasis
from mercer.plotting import basis_functions, kernel_sections

x = np.linspace(-1.0, 1.0, 401)
centres = np.linspace(-1.0, 1.0, 11)
bases = {
    "monomials $x^m$, $m \\leq 6$": PolynomialBasis(degree=6),
    "11 Gaussians of width 0.2": GaussianBasis(centres=centres, width=0.2),
    "11 sigmoids of width 0.1": SigmoidBasis(centres=centres, width=0.1),
}

# %% Plot the bases and their kernels, and print some values.
figure, axes = plt.subplots(2, 3, figsize=(12.8, 7.2), layout="constrained", sharex=True)
print("basis                        functions    k(-0.5, 0)    k(0, 0)    k(0.5, 0)    largest at")
for (name, basis), (upper, lower) in zip(bases.items(), axes.T, strict=True):
    kernel = Features(basis)
    basis_functions(basis, x, ax=upper)
    kernel_sections(kernel, [0.0, -0.5], x, ax=lower)
    lower.set_ylim(bottom=0.0)
    upper.set_title(name, fontsize=14)
    upper.set_xlabel("")  # shared with the lower panel

    left, middle, right = kernel([[-0.5], [0.0], [0.5]], [[0.0]])[:, 0]
    section = kernel(x[:, None], [[0.0]])[:, 0]
    flat = np.ptp(section) < 1e-12
    top = "everywhere" if flat else f"x = {x[np.argmax(section)]:.2f}"
    print(f"{type(basis).__name__:30s} {basis(x[:, None]).shape[1]:7d} {left:13.3f} ", end="")
    print(f"{middle:10.3f} {right:12.3f}    {top}")
for panel in axes.flat:
    panel.tick_params(labelsize=11)
    panel.xaxis.label.set_fontsize(13)
    panel.yaxis.label.set_fontsize(13)
figure.suptitle("Basis functions and their kernels", fontsize=16)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "kernels_from_bases.png", dpi=150)
print("figure: out/kernels_from_bases.png")
