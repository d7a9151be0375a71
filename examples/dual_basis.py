"""The dual basis: how much each target contributes to the prediction f(x).

Kernel ridge regression is linear in the targets: f(x) = sum_i y_i psi_i(x) with the functions
psi(x) = (K + alpha I)^-1 k(x).  The radial function r^4 log r is 0 at its own point and grows
without bound.  Nevertheless its dual functions are localised.  What to look for:

* Inside [0, 1] the functions are damped oscillations around points 1, 20 and 48.  They are large
  near their own point and close to 0 at all other points, so f is local there.
* Outside of [0, 1] they grow rapidly (top right, at a scale ten times as large).  Extrapolation is
  not local and not reliable.
* The bottom row shows the kernel at the same three points, and the fit to a noisy sine.

-r^4 log r is conditionally positive definite of order 3, and K has negative eigenvalues.  The
system is therefore solved by `solver="lstsq"`, which does not require a positive definite K.

The figure is saved as ``out/dual_basis.png``.
"""

# %% Data: 48 noisy points of a sine.
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

# %% Fit, and compute the dual functions of three points.
model = KernelRidge(alpha=1e-6, kernel=ThinPlate(degree=4), solver="lstsq").fit(X, y)
selected = [0, 19, 47]
basis = model.dual_basis(selected)
all_functions = model.dual_basis()
x = np.linspace(-0.12, 1.12, 1000)[:, None]
difference = np.abs(all_functions(x) @ y - model.predict(x)).max()
print(f"largest |sum y_i psi_i - f|        {difference:.1e}")
inside = np.abs(basis(x[(x[:, 0] >= 0) & (x[:, 0] <= 1)])).max()
print(f"largest |psi| on [0, 1]            {inside:.2f}")
print(f"largest |psi| on [-0.12, 1.12]     {np.abs(basis(x)).max():.2f}")

# %% Plot.
layout = [["inside", "beyond"], ["kernel", "fit"]]
figure, axes = plt.subplot_mosaic(layout, figsize=(12.0, 8.0), layout="constrained")
styles = (("-", "#0072B2"), ("-.", "#D55E00"), ("--", "#009E73"))
names = [f"point {i + 1}" for i in selected]
for key in ("inside", "beyond"):
    for values, (dash, colour), name in zip(basis(x).T, styles, names, strict=True):
        axes[key].plot(x, values, dash, color=colour, linewidth=2, label=name)
    axes[key].set(xlabel="x", ylabel="ψ(x)")
for c, (_, colour) in enumerate(styles):
    axes["inside"].axvline(X[selected[c], 0], color=colour, linewidth=0.8, alpha=0.6)
axes["inside"].plot(X, np.zeros_like(X), "|", color="0.4", markersize=8, label="the 48 points")
axes["inside"].set(
    xlim=(0, 1), ylim=(-0.4, 1.3), title="Dual basis of $r^4 \\log r$, within the data"
)
axes["inside"].legend(loc="upper center", ncols=2, frameon=False)
axes["beyond"].axvspan(0, 1, color="0.9", linewidth=0)
axes["beyond"].text(0.5, -6.0, "range of the data", ha="center")
axes["beyond"].set(xlim=(-0.12, 1.12), title="The same functions, outside of the data")
axes["beyond"].legend(loc="upper center", frameon=False)
kernel_sections(model.kernel_, X[selected, 0], x, ax=axes["kernel"])
for line, (dash, _) in zip(axes["kernel"].lines[::2], styles, strict=True):
    line.set_linestyle(dash)
axes["kernel"].set_title("The kernel at the same three points (crosses)")
axes["kernel"].legend(axes["kernel"].lines[::2], names, loc="lower center", frameon=False)
axes["fit"].axvspan(0, 1, color="0.9", linewidth=0)
axes["fit"].plot(X, y, "o", color="#D55E00", markersize=4, label="48 points")
axes["fit"].plot(x, model.predict(x), color="#0072B2", label="prediction Σ yᵢ ψᵢ")
axes["fit"].set(title="The fit", xlabel="x", ylabel="y", xlim=(-0.12, 1.12), ylim=(-2, 2))
axes["fit"].legend(frameon=False)
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "dual_basis.png", dpi=110)
