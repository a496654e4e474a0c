#!/usr/bin/env python3
"""Operators of ai.onnx.ml on the real runtime, against ONNX Runtime.

    tests/conformance/classic.py [-k PATTERN,...] [-v]

Scaling, linear models, and ensembles of random trees. Models and values are made here, from a seed.
"""

import sys

import numpy as np

import contrib
from contrib import F32, RNG, Case, cases, normal, whole

ML = {"domain": "ai.onnx.ml"}
I64 = np.int64


def floats(array):
    return [float(x) for x in np.ravel(array)]


def feature_cases():
    x = {"x": normal(5, 4)}
    for offset, scale in ((4, 4), (1, 1)):
        yield Case(f"Scaler_{offset}_{scale}", "Scaler", "x", x, offset=floats(normal(offset)), scale=floats(normal(scale)), **ML)
    yield Case("Scaler_int64", "Scaler", "x", {"x": whole(I64, -9, 9, 3, 2)}, offset=[1.0, 2.0], scale=[0.5, 3.0], **ML)
    rows = np.concatenate([normal(4, 5), np.zeros((1, 5), F32)])
    for norm in ("MAX", "L1", "L2"):
        yield Case(f"Normalizer_{norm}", "Normalizer", "x", {"x": np.abs(rows)}, norm=norm, **ML)
    for norm in ("L1", "L2"):
        yield Case(f"Normalizer_{norm}_signs", "Normalizer", "x", {"x": rows}, norm=norm, **ML)
    yield Case("Binarizer", "Binarizer", "x", x, threshold=0.25, **ML)
    yield Case("ArrayFeatureExtractor", "ArrayFeatureExtractor", "x i", x, {"i": np.array([3, 0, 3])}, **ML)
    yield Case("ArrayFeatureExtractor_run", "ArrayFeatureExtractor", "x i", {**x, "i": np.array([[2, 1]])}, **ML)
    holes = normal(4, 3)
    holes[0, 1] = holes[2, 2] = np.nan
    yield Case("Imputer_nan", "Imputer", "x", {"x": holes}, imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan"), **ML)
    yield Case("Imputer_number", "Imputer", "x", {"x": whole(F32, 0, 3, 4, 3)}, imputed_value_floats=[7.0], replaced_value_float=1.0, **ML)


def linear_cases():
    x = {"x": normal(6, 4)}
    for targets in (1, 3):
        for post in ("NONE", "LOGISTIC", "SOFTMAX"):
            if targets > 1 or post == "NONE":
                yield Case(f"LinearRegressor_{targets}_{post}", "LinearRegressor", "x", x, coefficients=floats(normal(targets, 4)),
                           intercepts=floats(normal(targets)), targets=targets, post_transform=post, **ML)
    yield Case("LinearRegressor_plain", "LinearRegressor", "x", x, coefficients=floats(normal(4)), **ML)
    for classes in (2, 3):
        for post in ("NONE", "LOGISTIC", "SOFTMAX"):
            yield Case(f"LinearClassifier_{classes}_{post}", "LinearClassifier", "x", [x, {"x": normal(1, 4)}], coefficients=floats(normal(classes, 4)),
                       intercepts=floats(normal(classes)), classlabels_ints=[7, 3, 9][:classes], multi_class=1, post_transform=post,
                       out=(I64, F32), dims={"n": "1..8"}, shapes={"x": ["n", 4]}, **ML)


def grow(tree, depth, features, results, mode, nodes, votes):
    """A random tree."""
    first = len(nodes)

    def node(level):
        number = len(nodes) - first
        if level == depth or (level and RNG.random() < 0.2):
            nodes.append((tree, number, 0, 0.0, "LEAF", 0, 0))
            votes.extend((tree, number, r, float(RNG.standard_normal())) for r in range(results) if RNG.random() < 0.9 or not r)
        else:
            at = len(nodes)
            nodes.append(None)  # ONNX Runtime takes the first node of a tree for its root
            nodes[at] = (tree, number, int(RNG.integers(features)), float(whole(F32, -2, 3)), mode, node(level + 1), node(level + 1))
        return number

    node(0)


def ensemble(kind, trees, depth, features, results, mode="BRANCH_LEQ"):
    nodes, votes = [], []
    for tree in range(trees):
        grow(tree, depth if tree else 0, features, results, mode, nodes, votes)
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    made = {f"nodes_{n}": list(v) for n, v in zip(names, zip(*nodes))}
    return {**made, **{f"{kind}_{n}": list(v) for n, v in zip(("treeids", "nodeids", "ids", "weights"), zip(*votes))}}


def tree_cases():
    feeds = [{"x": whole(F32, -3, 4, n, 5)} for n in (7, 1)]
    open_batch = {"dims": {"n": "1..8"}, "shapes": {"x": ["n", 5]}}
    for mode in ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ"):
        yield Case(f"TreeEnsembleRegressor_{mode}", "TreeEnsembleRegressor", "x", feeds, n_targets=1, **ensemble("target", 4, 4, 5, 1, mode),
                   **open_batch, **ML)
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        yield Case(f"TreeEnsembleRegressor_{how}", "TreeEnsembleRegressor", "x", feeds, n_targets=1, aggregate_function=how, base_values=[0.5],
                   **ensemble("target", 5, 3, 5, 1), **open_batch, **ML)
    yield Case("TreeEnsembleRegressor_targets", "TreeEnsembleRegressor", "x", feeds, n_targets=3, base_values=[0.5, 1.0, -1.0],
               **ensemble("target", 9, 6, 5, 3), **open_batch, **ML)
    yield Case("TreeEnsembleClassifier_int64", "TreeEnsembleClassifier", "x", {"x": whole(I64, -3, 4, 6, 5)}, classlabels_int64s=[4, 2, 3],
               out=(I64, F32), **ensemble("class", 4, 3, 5, 3), **ML)
    for post in ("NONE", "SOFTMAX", "LOGISTIC"):
        yield Case(f"TreeEnsembleClassifier_{post}", "TreeEnsembleClassifier", "x", feeds, classlabels_int64s=[5, 2, 8, 1],
                   post_transform=post, out=(I64, F32), **ensemble("class", 6, 5, 5, 4), **open_batch, **ML)
    for post in ("NONE", "LOGISTIC"):
        yield Case(f"TreeEnsembleClassifier_two_{post}", "TreeEnsembleClassifier", "x", feeds, classlabels_int64s=[0, 1], post_transform=post,
                   base_values=[0.3], out=(I64, F32), **ensemble("class", 6, 5, 5, 1), **open_batch, **ML)
    probabilities = ensemble("class", 6, 5, 5, 1)
    probabilities["class_weights"] = floats(RNG.random(len(probabilities["class_weights"])) / 6)
    for post in ("NONE", "LOGISTIC"):
        yield Case(f"TreeEnsembleClassifier_two_probabilities_{post}", "TreeEnsembleClassifier", "x", feeds, classlabels_int64s=[0, 1],
                   post_transform=post, out=(I64, F32), **probabilities, **open_batch, **ML)


def main():
    return cases.run([*feature_cases(), *linear_cases(), *tree_cases()], contrib.check, cases.parser(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
