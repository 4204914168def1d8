"""One measured figure: ours beside the peer's, their ratio, and the goal that was set for it."""

from __future__ import annotations

from dataclasses import dataclass

from measure import Cost

__all__ = ["Figure", "Goal", "at_least", "at_most", "in_ms", "in_s", "of_costs"]


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on a ratio."""

    bound: float
    is_ceiling: bool

    def __str__(self) -> str:
        return f"{'≤' if self.is_ceiling else '≥'} {self.bound:.3g}"

    def is_met(self, ratio: float) -> bool:
        return ratio <= self.bound if self.is_ceiling else ratio >= self.bound


def at_most(bound: float) -> Goal:
    return Goal(bound, is_ceiling=True)


def at_least(bound: float) -> Goal:
    return Goal(bound, is_ceiling=False)


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table. `ratio` is of wall times (or bytes), `cpu_ratio` of CPU times; no goal: shown only."""

    letter: str
    what: str
    ours: str
    other: str
    ratio: float
    cpu_ratio: float | None = None
    goal: Goal | None = None

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return ""
        return "met" if self.goal.is_met(self.ratio) else "**missed**"


def in_s(cost: Cost) -> str:
    return f"{cost.wall_s:.2f} s"


def in_ms(cost: Cost) -> str:
    digits = 0 if cost.wall_s >= 0.1 else 1 if cost.wall_s >= 0.001 else 3
    return f"{1000 * cost.wall_s:.{digits}f} ms"


def of_costs(
    letter: str, what: str, top: Cost, bottom: Cost, goal: Goal | None, *, ours: str, other: str
) -> Figure:
    """Return the figure whose ratio is `top` over `bottom`."""
    cpu_ratio = top.cpu_s / bottom.cpu_s if bottom.cpu_s > 0 else None
    return Figure(
        letter=letter,
        what=what,
        ours=ours,
        other=other,
        ratio=top.wall_s / bottom.wall_s if bottom.wall_s > 0 else float("inf"),
        cpu_ratio=cpu_ratio,
        goal=goal,
    )
