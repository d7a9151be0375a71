"""Class colours: distances for colour-blind readers, and contrast with the paper."""

from itertools import combinations

import numpy as np
import pytest

from mercer._core import CLASS_COLOURS, OTHER_COLOUR, PAPER, page_palette

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def linear(colour):
    """Return the linear RGB values of a hexadecimal colour."""
    s = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    t = TO_XYZ @ np.clip(rgb, 0, 1) / TO_XYZ.sum(axis=1)
    x, y, z = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def ciede2000(first, second):
    """Return the CIEDE2000 difference of two Lab colours (Sharma, Wu and Dalal, 2005)."""
    (L1, a1, b1), (L2, a2, b2) = first, second
    C7 = ((np.hypot(a1, b1) + np.hypot(a2, b2)) / 2) ** 7
    a1, a2 = (a * (1.5 - 0.5 * np.sqrt(C7 / (C7 + 25**7))) for a in (a1, a2))
    C1, C2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if C1 * C2 else 0.0
    dL, dC, dH = L2 - L1, C2 - C1, 2 * np.sqrt(C1 * C2) * np.sin(np.radians(turn / 2))
    L, C = (L1 + L2) / 2, (C1 + C2) / 2
    h = (h1 + turn / 2) % 360 if C1 * C2 else h1 + h2
    cos = [np.cos(np.radians(k * h + shift)) for k, shift in ((1, -30), (2, 0), (3, 6), (4, -63))]
    T = 1 + np.dot([-0.17, 0.24, 0.32, -0.20], cos)
    SL = 1 + 0.015 * (L - 50) ** 2 / np.sqrt(20 + (L - 50) ** 2)
    SC, SH = 1 + 0.045 * C, 1 + 0.015 * C * T
    angle = np.radians(60 * np.exp(-(((h - 275) / 25) ** 2)))
    R = -2 * np.sqrt(C**7 / (C**7 + 25**7)) * np.sin(angle)
    l_, c_, h_ = dL / SL, dC / SC, dH / SH
    return np.sqrt(l_**2 + c_**2 + h_**2 + R * c_ * h_)


def contrast(first, second):
    """Return the WCAG contrast ratio of two colours."""
    low, high = sorted(linear(c) @ [0.2126, 0.7152, 0.0722] + 0.05 for c in (first, second))
    return high / low


def smallest_difference(colours, vision):
    seen = [lab(np.asarray(VISION[vision]) @ linear(colour)) for colour in colours]
    return min(ciede2000(a, b) for a, b in combinations(seen, 2))


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [  # of the test data of Sharma, Wu and Dalal
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1, 2), (50, 0, 0), 2.3669),
        ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
        ((50, 2.5, 0), (61, -5, 29), 22.8977),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_ciede2000(first, second, difference):
    assert ciede2000(first, second) == pytest.approx(difference, abs=1e-4)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_class_colours_differ_for_all_readers_and_from_the_background(theme):
    colours = CLASS_COLOURS[theme]
    table = {v: [smallest_difference(colours[:k], v) for k in (8, 12)] for v in VISION}
    for vision, (first, every) in table.items():
        print(f"{theme:6} {vision:13} first 8: {first:5.1f}  all 12: {every:5.1f}")
    assert len(colours) == 12
    assert min(first for first, _ in table.values()) > 13
    assert min(every for _, every in table.values()) > 12
    for vision in VISION:  # classes differ from missing values and from other classes
        assert min(smallest_difference((c, OTHER_COLOUR[theme]), vision) for c in colours) > 8
    ratios = [contrast(colour, PAPER[theme]) for colour in colours]
    print(f"{theme:6} contrast from {min(ratios):.2f} to {max(ratios):.2f}")
    assert min(ratios) >= 3
    assert contrast(OTHER_COLOUR[theme], PAPER[theme]) >= 3


def test_the_sequential_colours_of_pages_are_those_of_figures():
    matplotlib = pytest.importorskip("matplotlib")
    stops = np.array(page_palette()["sequential"]) / 255
    positions = np.linspace(0, 1, len(stops))
    viridis = matplotlib.colormaps["viridis"](positions)[:, :3]
    assert np.abs(stops - viridis).max() < 2 / 255
