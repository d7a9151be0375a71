"""What a kernel matrix shows: clusters, and the effect of the length scale.

The entry K[i, j] = k(xᵢ, xⱼ) is the similarity of two points.  If points of the same class are next
to each other in the matrix, similar points form squares along the diagonal.  What to look for:

* Length scale too small: every point is similar only to itself, and K is close to the identity.
* Length scale in between: three squares, one for each cluster.
* Length scale too large: all points look alike, and K is close to a constant matrix.
* Right: the eigenvalues of K.  For the identity they are all 1, for a constant matrix only one is
  not 0.  In between, three large eigenvalues correspond to three clusters.

The figure is saved as ``out/kernel_matrix.png``.
"""

# %% Three clusters and three length scales.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer.datasets import three_clusters
from mercer.kernels import RBF

X, y = three_clusters(120, random_state=3)
X = X[np.argsort(y, kind="stable")]
length_scales = (0.02, 0.2, 3.0)
matrices = [RBF(length_scale)(X) for length_scale in length_scales]
spectra = [np.linalg.eigvalsh(K)[::-1] for K in matrices]

# %% How many eigenvalues explain 90 % of the trace?
for length_scale, K, values in zip(length_scales, matrices, spectra, strict=True):
    needed = 1 + np.argmax(np.cumsum(values) >= 0.9 * values.sum())
    mean = (K.sum() - len(K)) / (len(K) ** 2 - len(K))
    print(f"length scale {length_scale:4.2f}: mean similarity of two points {mean:.3f}, ", end="")
    print(f"{needed} eigenvalues for 90 % of the trace")

# %% Plot.
figure, axes = plt.subplots(
    1, 4, figsize=(14.5, 3.9), width_ratios=[1, 1, 1, 1.25], layout="constrained"
)
styles = zip(
    length_scales, matrices, spectra, ("#D55E00", "#0072B2", "#009E73"), "^os", strict=True
)
for ax, (length_scale, K, values, colour, marker) in zip(axes, styles, strict=False):
    image = ax.imshow(K, cmap="viridis", vmin=0, vmax=1)
    ax.set(title=f"length scale {length_scale:g}", xlabel="point j")
    axes[3].semilogy(
        np.arange(1, 21),
        values[:20],
        f"{marker}-",
        color=colour,
        markersize=4,
        label=f"{length_scale:g}",
    )
axes[0].set_ylabel("point i")
figure.colorbar(image, ax=axes[:3], label="k(xᵢ, xⱼ)", shrink=0.8)
axes[3].set(title="Eigenvalues of K", xlabel="number", ylabel="eigenvalue", ylim=(1e-9, 1e3))
axes[3].set_xticks([1, 5, 10, 15, 20])
axes[3].legend(frameon=False, title="length scale", loc="lower left")
axes[3].spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "kernel_matrix.png", dpi=110)
print("figure: out/kernel_matrix.png")
