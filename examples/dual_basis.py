"""The dual basis: how much each target says about f(x).

Kernel ridge regression is linear in the targets, f(x) = sum_i y_i psi_i(x), with the functions
psi(x) = (K + alpha I)^-1 k(x).  The radial function r^4 log r is 0 at its own point and grows
without end.  Yet its dual functions are localised.  One should see:

* within [0, 1], damped oscillations around the 1st, the 20th and the 48th point, large near it and
  close to 0 at all others: f is local there;
* outside of [0, 1], rapid growth: extrapolation is not local, and not to be trusted;
* below, the kernel itself at the same three points, and the fit, a sine through noise.

-r^4 log r is conditionally positive definite, of order 3, and K has negative eigenvalues: the
system is solved by `solver="lstsq"`, which asks for none of the signs.

It writes ``out/dual_basis.png``.
"""

# %% 48 points on a sine.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidge
from mercer.kernels import ThinPlate
from mercer.plotting import kernel_sections

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 1, size=48))[:, None]
y = np.sin(2 * np.pi * X[:, 0]) + 0.05 * rng.normal(size=48)

# %% The fit, and the dual functions of three of the points.
model = KernelRidge(alpha=1e-6, kernel=ThinPlate(degree=4), solver="lstsq").fit(X, y)
chosen = [0, 19, 47]
basis = model.dual_basis(chosen)
whole = model.dual_basis()
x = np.linspace(-0.12, 1.12, 1000)[:, None]
gap = np.abs(whole(x) @ y - model.predict(x)).max()
print(f"largest |sum y_i psi_i - f|        {gap:.1e}")
inside = np.abs(basis(x[(x[:, 0] >= 0) & (x[:, 0] <= 1)])).max()
print(f"largest |psi| on [0, 1]            {inside:.2f}")
print(f"largest |psi| on [-0.12, 1.12]     {np.abs(basis(x)).max():.2f}")

# %% The picture.
figure, axes = plt.subplot_mosaic(
    [["dual", "dual"], ["kernel", "fit"]], figsize=(10.0, 8.0), layout="constrained"
)
styles = (("-", "#0072B2"), ("-.", "#D55E00"), ("--", "#009E73"))
for c, (dash, colour) in enumerate(styles):
    name = f"point {chosen[c] + 1}"
    axes["dual"].plot(x, basis(x)[:, c], dash, color=colour, linewidth=2, label=name)
    axes["dual"].axvline(X[chosen[c], 0], color=colour, linewidth=0.8, alpha=0.6)
axes["dual"].plot(X, np.zeros_like(X), "|", color="0.4", markersize=8)
axes["dual"].set(ylim=(-0.7, 1.2), title="dual basis functions of $r^4 \\log r$", xlabel="x")
axes["dual"].margins(x=0)
axes["dual"].legend(loc="upper right", bbox_to_anchor=(0.9, 0.98))
kernel_sections(model.kernel_, X[chosen, 0], x, ax=axes["kernel"])
axes["kernel"].set_title("the kernel at the same points")
axes["kernel"].get_legend().remove()
axes["fit"].plot(X, y, ".", color="0.3", label="48 points")
axes["fit"].plot(x, model.predict(x), label="fit")
axes["fit"].set(title="the fit", xlabel="x", ylim=(-2, 2))
axes["fit"].legend()
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "dual_basis.png", dpi=110)
