#!/usr/bin/env python3
"""Rewrites a .cu's launches so that a compiler of C++ takes them: launches.py SOURCE OUTPUT

kernel<<<grid, block, shared, stream>>>(arguments) becomes a call of software_gpu::launcher (headers/cuda_runtime.h); all
else stays, and keeps its file and lines."""

import re
import sys

source, output = sys.argv[1:]
text = open(source).read()
text = re.sub(
    r"(\w+(?:<[^<>;{}]*>)?)\s*<<<(.*?)>>>\s*\(",
    lambda found: f'software_gpu::launcher("{found[1]}", __FILE__, __LINE__, {found[1]}, {found[2]})(',
    text,
    flags=re.DOTALL,
)
if "<<<" in text:
    sys.exit(f"{source}: has a launch of a form that launches.py does not know")
with open(output, "w") as file:
    file.write(f'#line 1 "{source}"\n{text}')
