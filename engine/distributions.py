"""Quantiles and tails of the distributions that the statistics need: Student's t, chi-squared, binomial. No scipy at run time."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()


@lru_cache(maxsize=8192)
def t_quantile(p: float, freedom: int) -> float:
    """Quantile of Student's t for a whole number of degrees of freedom, 0 < p < 1, to about 1e-9.

    Up to 200 degrees the exact distribution (Abramowitz and Stegun 26.7.3 and 26.7.4) is inverted by bisection; above,
    their expansion around the normal quantile (26.7.5).
    """
    if not 0.0 < p < 1.0 or freedom < 1:
        raise ValueError(f"no t quantile for p = {p} and {freedom} degrees of freedom")
    if p < 0.5:
        return -t_quantile(1.0 - p, freedom)
    if freedom > 200:
        return _t_expansion(_NORMAL.inv_cdf(p), freedom)
    low, high = 0.0, 1.0
    while _t_cdf(high, freedom) < p:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if _t_cdf(middle, freedom) < p else (low, middle)
    return high


def _t_cdf(t: float, freedom: int) -> float:
    """P(T <= t) for t >= 0, as a finite sum of powers of cos(theta) with theta = atan(t / sqrt(df))."""
    theta = math.atan(t / math.sqrt(freedom))
    cos, sin = math.cos(theta), math.sin(theta)
    odd = freedom % 2 == 1
    term = total = cos if odd else 1.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= cos * cos * (k - 1) / k
        total += term
    if odd:
        inside = theta if freedom == 1 else theta + sin * total
        return 0.5 + inside / math.pi
    return 0.5 + sin * total / 2.0


def _t_expansion(x: float, freedom: int) -> float:
    g1 = (x**3 + x) / 4.0
    g2 = (5.0 * x**5 + 16.0 * x**3 + 3.0 * x) / 96.0
    g3 = (3.0 * x**7 + 19.0 * x**5 + 17.0 * x**3 - 15.0 * x) / 384.0
    return x + g1 / freedom + g2 / freedom**2 + g3 / freedom**3


@lru_cache(maxsize=8192)
def chi_squared_quantile(p: float, freedom: int) -> float:
    """Quantile of chi-squared by the cube of Wilson and Hilferty (1931): within 2 % from p = 0.1 and 3 degrees of freedom on."""
    if not 0.0 < p < 1.0 or freedom < 1:
        raise ValueError(f"no chi-squared quantile for p = {p} and {freedom} degrees of freedom")
    spread = 2.0 / (9.0 * freedom)
    root = 1.0 - spread + _NORMAL.inv_cdf(p) * math.sqrt(spread)
    return freedom * max(root, 1e-3) ** 3


def binomial_tail_at_most(k: int, n: int, p: float) -> float:
    """P(X <= k) for X binomial(n, p), exact; summed from the largest term outward, so small tails keep their digits."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    if not 0.0 < p < 1.0:
        return 1.0 if p <= 0.0 else 0.0
    if k > n * p:
        return 1.0 - _tail_above(n - k - 1, n, 1.0 - p)
    return _tail_above(k, n, p)


def binomial_tail_at_least(k: int, n: int, p: float) -> float:
    """P(X >= k) for X binomial(n, p), exact."""
    return binomial_tail_at_most(n - k, n, 1.0 - p)


def _tail_above(k: int, n: int, p: float) -> float:
    """P(X <= k) for k at or below the mean (or just beside it): terms shrink from k downward."""
    term = math.exp(
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(p)
        + (n - k) * math.log1p(-p)
    )
    total, odds = term, (1.0 - p) / p
    for j in range(k, 0, -1):
        term *= j / (n - j + 1) * odds
        total += term
        if term < total * 1e-17:
            break
    return min(total, 1.0)
