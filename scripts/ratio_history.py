"""Print docs/ratios.md: the accepted ratios of the benchmarks and their history. `make docs` runs it; a test compares the page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape

from benchmark_ratios import ACCEPTED, HISTORY, Accepted, read_accepted

HEAD = """# Ratios of benchmarks

Each ratio is the time of Tahoe divided by the time of its peer in the same run: less is better, and below 1 Tahoe is faster. Ratios whose
name says *memory* or *growth* are no times: the script's first lines explain them. `make bench` fails if a ratio is above its limit, which
is the accepted ratio times its tolerance. `make bench-check`, a part of continuous integration, does the same with small sizes. `make
bench-accept` accepts the ratios of the last run, and adds them to `benchmarks/history.jsonl`. `make docs` prints this page."""
TITLES = {"full": "Default sizes: `make bench`", "check": "Small sizes: `make bench-check`"}
WIDTH, HEIGHT, SPACE = 140, 28, 4


def main() -> None:
    """Print the page."""
    history = [json.loads(line) for line in HISTORY.read_text().splitlines()]
    parts = [HEAD]
    for suite, commands in read_accepted(ACCEPTED.read_text()).items():
        runs = [run for run in history if run["suite"] == suite]
        parts.append(f"## {TITLES[suite]}")
        parts.append(
            f"{len(runs)} accepted runs, the last on {runs[-1]['date']} at commit {runs[-1]['commit']}."
            if runs
            else "No run yet."
        )
        parts += [
            section(command, cases, [run["ratios"].get(command, {}) for run in runs])
            for command, cases in commands.items()
            if cases
        ]
    print("\n\n".join(parts))


def section(command: str, cases: Mapping[str, Accepted], runs: Sequence[Mapping[str, float]]) -> str:
    """Return the table of one command."""
    rows = [
        f"| {cell(case)} | {accepted.ratio:.2f} | {accepted.limit:.2f} | {chart([run[case] for run in runs if case in run])} |"
        for case, accepted in cases.items()
    ]
    return "\n".join([f"### `{command}`", "", "| case | accepted | limit | history |", "|---|---:|---:|---|", *rows])


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def chart(values: Sequence[float]) -> str:
    """Return a line through the values as SVG; its bottom is zero."""
    if not values:
        return "–"
    most, last = max(values) or 1, max(1, len(values) - 1)
    places = [
        (SPACE + (WIDTH - 2 * SPACE) * number / last, HEIGHT - SPACE - (HEIGHT - 2 * SPACE) * value / most)
        for number, value in enumerate(values)
    ]
    points = " ".join(f"{x:.0f},{y:.0f}" for x, y in places)
    end_x, end_y = places[-1]
    title = escape(", ".join(f"{value:.2f}" for value in values))
    return (
        f'<svg role="img" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"><title>{title}</title>'
        f'<polyline points="{points}" fill="none" stroke="currentColor"/>'
        f'<circle cx="{end_x:.0f}" cy="{end_y:.0f}" r="3" fill="currentColor"/></svg>'
    )


if __name__ == "__main__":
    main()
