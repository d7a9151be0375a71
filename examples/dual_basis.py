"""The dual basis: how much each target says about f(x).

Kernel ridge regression is linear in the targets, f(x) = sum_i y_i psi_i(x), with the functions
psi(x) = (K + alpha I)^-1 k(x).  The radial function r^4 log r is 0 at its own point and grows
without end.  Yet its dual functions are localised.  One should see:

* within [0, 1], damped oscillations around the 1st, the 20th and the 48th point, large near it and
  close to 0 at all others: f is local there;
* outside of [0, 1], rapid growth (top right, at a scale ten times as large): extrapolation is not
  local, and not to be trusted;
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
layout = [["inside", "beyond"], ["kernel", "fit"]]
figure, axes = plt.subplot_mosaic(layout, figsize=(12.0, 8.0), layout="constrained")
styles = (("-", "#0072B2"), ("-.", "#D55E00"), ("--", "#009E73"))
names = [f"point {i + 1}" for i in chosen]
for key in ("inside", "beyond"):
    for values, (dash, colour), name in zip(basis(x).T, styles, names, strict=True):
        axes[key].plot(x, values, dash, color=colour, linewidth=2, label=name)
    axes[key].set(xlabel="x", ylabel="ψ(x)")
for c, (_, colour) in enumerate(styles):
    axes["inside"].axvline(X[chosen[c], 0], color=colour, linewidth=0.8, alpha=0.6)
axes["inside"].plot(X, np.zeros_like(X), "|", color="0.4", markersize=8, label="the 48 points")
axes["inside"].set(
    xlim=(0, 1), ylim=(-0.4, 1.3), title="dual basis of $r^4 \\log r$, among the data"
)
axes["inside"].legend(loc="upper center", ncols=2, frameon=False)
axes["beyond"].axvspan(0, 1, color="0.9", linewidth=0)
axes["beyond"].text(0.5, -6.0, "where the data are", ha="center")
axes["beyond"].set(xlim=(-0.12, 1.12), title="the same functions, beyond the data")
axes["beyond"].legend(loc="upper center", frameon=False)
kernel_sections(model.kernel_, X[chosen, 0], x, ax=axes["kernel"])
for line, (dash, _) in zip(axes["kernel"].lines[::2], styles, strict=True):
    line.set_linestyle(dash)
axes["kernel"].set_title("the kernel at the same three points (crosses)")
axes["kernel"].legend(axes["kernel"].lines[::2], names, loc="lower center", frameon=False)
axes["fit"].axvspan(0, 1, color="0.9", linewidth=0)
axes["fit"].plot(X, y, "o", color="#D55E00", markersize=4, label="48 points")
axes["fit"].plot(x, model.predict(x), color="#0072B2", label="the fit, Σ yᵢ ψᵢ")
axes["fit"].set(title="the fit", xlabel="x", ylabel="y", xlim=(-0.12, 1.12), ylim=(-2, 2))
axes["fit"].legend(frameon=False)
out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "dual_basis.png", dpi=110)
