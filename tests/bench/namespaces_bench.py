"""What the benchmarks on hosts that are network namespaces share."""

import csv
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAYLOAD = 0.941  # of what an Ethernet link carries


def bits_per_second(rate):
    """Of a rate as tc writes it: "100mbit"."""
    return float(rate.removesuffix("mbit").removesuffix("gbit")) * (1e9 if rate.endswith("gbit") else 1e6)


def need_root(script):
    if os.geteuid() != 0:
        sys.exit(f"{script}: network namespaces need root")


def write_table(folder, name, rows):
    """Into FOLDER/NAME, with a line of the columns' names. What a row lacks is empty."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    with open(pathlib.Path(folder, name), "w", newline="") as file:
        table = csv.DictWriter(file, list(dict.fromkeys(column for row in rows for column in row)))
        table.writeheader()
        table.writerows(rows)
