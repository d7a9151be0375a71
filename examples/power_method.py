"""The power method with deflation for kernel PCA, step by step.

q ← K q / |K q| converges to the first eigenvector.  The next ones follow by deflation ("peeling"):
q is kept orthogonal to those found.  In each step, the error shrinks by the ratio of two
neighbouring eigenvalues.  What to look for:

* Left: the eigenvalues of the centred kernel matrix of three clusters.  The first two are nearly
  equal, and then there is a gap.
* Right: the residual |K q − θ q| / θ for the first four components.  The first one converges
  slowly, because the second eigenvalue is close; the second one fast, because of the gap.
* The block Krylov method computes all four at once, with a few products of K with a block.

The figure is saved as ``out/power_method.png``.
"""

# %% The centred kernel matrix.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer.datasets import three_clusters
from mercer.gram import CentredGram, gram
from mercer.kernels import RBF
from mercer.solvers import BlockKrylov, PowerDeflation

X, _ = three_clusters(90, random_state=3)
operator = CentredGram(gram(RBF.from_gamma(10.0), X))
K = operator @ np.eye(len(X))
exact = np.linalg.eigvalsh(K)[::-1]

# %% The power method, with the residual of each step.
rng = np.random.default_rng(0)
U = np.zeros((len(X), 0))
histories = []
for _ in range(4):
    q = rng.standard_normal(len(X))
    q /= np.linalg.norm(q)
    history = []
    while len(history) < 2000 and (not history or history[-1] > 1e-10):
        w = K @ q
        w -= U @ (U.T @ w)
        value = q @ w
        history.append(np.linalg.norm(w - value * q) / value)
        q = w / np.linalg.norm(w)
    U = np.c_[U, q]
    histories.append(history)
for j, history in enumerate(histories):
    ratio = exact[j + 1] / exact[j]
    print(f"component {j + 1}: eigenvalue {exact[j]:6.3f}, ratio to the next {ratio:.3f}, ", end="")
    print(f"{len(history)} steps")
power = PowerDeflation(random_state=0).eigenpairs(operator, 4)
krylov = BlockKrylov().eigenpairs(operator, 4)
print(f"largest error of PowerDeflation {np.abs(power.values - exact[:4]).max():.0e}")
print(f"block Krylov: {krylov.report.n_iter} passes over K")

# %% Plot.
figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained")
axes[0].semilogy(np.arange(1, 16), exact[:15], "o-", color="#0072B2")
axes[0].set(title="Eigenvalues of the centred kernel matrix", xlabel="component")
axes[0].set_ylabel("eigenvalue")
for j, (history, colour) in enumerate(
    zip(histories, ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True)
):
    label = f"component {j + 1}, ratio {exact[j + 1] / exact[j]:.2f}"
    axes[1].semilogy(np.arange(1, len(history) + 1), history, color=colour, label=label)
axes[1].set(title="Residuals of the power method", xlabel="step", ylabel="|K q − θ q| / θ")
axes[1].legend(frameon=False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "power_method.png", dpi=110)
print("figure: out/power_method.png")
