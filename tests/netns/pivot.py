"""Tables with a row for each program or style and a column for each fault, filled cell by cell by the cases."""

import json

MARK = "cell: "  # run.py collects these lines
_TITLES = {}  # table -> row -> column -> text


def tell(table, row, column, text):
    """A cell, from inside a case."""
    print(MARK + json.dumps([table, row, column, text]), flush=True)


def collect(lines):
    """Keeps the cells among a case's lines."""
    for line in lines:
        if line.startswith(MARK):
            table, row, column, text = json.loads(line.removeprefix(MARK))
            _TITLES.setdefault(table, {}).setdefault(row, {})[column] = text


def show():
    """Prints what was collected."""
    for table, rows in _TITLES.items():
        columns = list(dict.fromkeys(column for row in rows.values() for column in row))
        lines = [[table, *columns]] + [[row, *(cells.get(column, "-") for column in columns)] for row, cells in rows.items()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        for line in lines:
            print("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())
