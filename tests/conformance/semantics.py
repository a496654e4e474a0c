#!/usr/bin/env python3
"""What each version of each operator means, edge by edge, on the real runtime against a reference.

    tests/conformance/semantics.py [-k PATTERN,...] [-v]

The tables are in semantics_*.py, a family each; single_node.py runs them.
"""

import sys

import semantics_exact
import semantics_pointwise
import semantics_quantized
import semantics_reduce
import semantics_shape
import semantics_window
import single_node

FAMILIES = (semantics_exact, semantics_pointwise, semantics_quantized, semantics_reduce, semantics_shape, semantics_window)


def main():
    return single_node.main(__doc__, (case for family in FAMILIES for case in family.cases()))


if __name__ == "__main__":
    sys.exit(main())
