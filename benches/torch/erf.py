#!/usr/bin/env python3
"""Fits erf(x / sqrt 2) = x P(x^2) / Q(x^2) for |x| <= 5.6, with five powers each: the coefficients in crates/encoders/src/text/numbers.rs (needs numpy).

Least squares again and again, with more weight where the error is large: near the smallest largest error.
"""
from math import erf

import numpy as np

END, POWERS = 5.6, 5
x = END * np.sin(np.linspace(1e-4, np.pi / 2, 4000))
t = ((x / END) ** 2)[:, None]
wanted = np.array([erf(v / np.sqrt(2)) for v in x])
weight, q, best = np.ones_like(x), np.ones_like(x), (np.inf, None, None)
for _ in range(60):
    # x P - wanted (Q - 1) = wanted, linear in the coefficients.
    left = np.hstack([x[:, None] * t ** np.arange(POWERS + 1), -wanted[:, None] * t ** np.arange(1, POWERS + 1)])
    found, *_ = np.linalg.lstsq(left * (weight / q)[:, None], wanted * weight / q, rcond=None)
    top, bottom = found[: POWERS + 1], np.concatenate([[1], found[POWERS + 1 :]])
    q = t ** np.arange(POWERS + 1) @ bottom
    error = np.abs(x * (t ** np.arange(POWERS + 1) @ top) / q - wanted)
    if error.max() < best[0]:
        best = (error.max(), top, bottom)
    weight *= (error / error.max() + 0.02) ** 0.5
    weight /= weight.max()
print("largest error", best[0])
for name, values in [("P", best[1]), ("Q", best[2])]:
    print(name, [float(np.float32(v)) for v in (values / END ** (2 * np.arange(POWERS + 1)))[::-1]])
