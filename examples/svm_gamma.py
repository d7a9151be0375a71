"""Signs of a wrong kernel width: training error, test error and support vectors.

An SVM is trained on 600 of scikit-learn's digits, with Gaussian kernels exp(−γ|x − z|²) of
different width.  What to look for:

* γ too small: all images look alike, and C = 1 allows only a nearly constant function.  Training
  and test error are both large, and so is the number of support vectors.
* γ too large: every image is similar only to itself.  The training error is 0, the test error that
  of guessing, and every point is a support vector.
* In between, the number of support vectors has a minimum close to that of the test error.  This
  sign is visible without test data.
* Right: if γ is too large, kernel PCA needs hundreds of components for half of the variance.
* The dashed line is `gamma="scale"`, the default, which is a good start.

The figure is saved as ``out/svm_gamma.png``.
"""

# %% Data and models.
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mercer import SVC, KernelPCA

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, train_size=600, random_state=0)
gammas = np.geomspace(1e-4, 100.0, 13)

# %% Errors, support vectors, and the components that kernel PCA needs for half of the variance.
training, test, support, components = [], [], [], []
for gamma in gammas:
    model = SVC(C=1.0, gamma=gamma).fit(X_train, y_train)
    training.append(100 * (1 - model.score(X_train, y_train)))
    test.append(100 * (1 - model.score(X_test, y_test)))
    support.append(100 * len(model.support_) / len(X_train))
    ratio = KernelPCA(kernel="rbf", gamma=gamma).fit(X_train).explained_variance_ratio_
    components.append(1 + np.argmax(np.cumsum(ratio) >= 0.5 * ratio.sum()))
    print(
        f"gamma {gamma:8.4f}: error {training[-1]:5.1f} % training, {test[-1]:5.1f} % test, ",
        end="",
    )
    print(f"{support[-1]:5.1f} % support vectors, {components[-1]:3d} components")
scale = SVC(gamma="scale").fit(X_train, y_train)
print(f'gamma="scale" means {1 / (X_train.shape[1] * X_train.var()):.3f}, ', end="")
print(f"test error {100 * (1 - scale.score(X_test, y_test)):.1f} %")

# %% Plot.
figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.2), layout="constrained")
left.semilogx(gammas, test, "o-", color="#0072B2", label="test error")
left.semilogx(gammas, training, "^--", color="#D55E00", label="training error")
left.semilogx(gammas, support, "s:", color="#009E73", label="support vectors")
left.set(title="SVM with C = 1", xlabel="γ", ylabel="points (%)", ylim=(-3, 130))
left.set_yticks([0, 25, 50, 75, 100])
left.legend(frameon=False, ncols=3, loc="upper center")
right.semilogx(gammas, components, "o-", color="#0072B2")
right.set(title="Kernel PCA", xlabel="γ", ylabel="components for half of the variance")
for ax in (left, right):
    ax.axvline(1 / (X_train.shape[1] * X_train.var()), color="0.5", linestyle="--", ymax=0.8)
    ax.spines[["top", "right"]].set_visible(False)

out = Path(__file__).resolve().parent.parent / "out"
out.mkdir(exist_ok=True)
figure.savefig(out / "svm_gamma.png", dpi=120)
print("figure: out/svm_gamma.png")
