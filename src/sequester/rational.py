"""Numbers as they were meant: 0.7 is 7/10."""

from __future__ import annotations

from fractions import Fraction

_LARGEST_DENOMINATOR = 10**9


def exact(number: float | Fraction) -> Fraction:
    """The rational that was meant by a decimal: 0.7 is 7/10, and the float nearest to 1/3 is 1/3.

    Numerator and denominator stay small enough for products with counts to fit 64 bits. A number with more digits
    than that is rounded down, which for a bound is the stricter side.
    """
    if isinstance(number, Fraction):
        meant = number
    else:
        meant = Fraction(repr(float(number)))
        if meant.denominator > _LARGEST_DENOMINATOR:
            simple = Fraction(number).limit_denominator(10**6)
            meant = simple if float(simple) == number else meant
    if meant.denominator > _LARGEST_DENOMINATOR:
        meant = Fraction(int(meant * _LARGEST_DENOMINATOR), _LARGEST_DENOMINATOR)
    return meant


def plain(number: float | Fraction) -> str:
    """A number without needless digits."""
    return f"{float(number):.10g}"
