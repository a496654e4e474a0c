#!/usr/bin/env python3
"""Operators of ai.onnx.ml on the real runtime, against ONNX Runtime.

    tests/conformance/classic.py [-k PATTERN,...] [-v]

Features, labels, linear models, support vectors, and ensembles of random trees. Models and values are made here, from a
seed.
"""

import sys

import numpy as np
from onnx import TensorProto, helper

import contrib
from contrib import F32, RNG, Case, cases, normal, whole

ML = {"domain": "ai.onnx.ml"}
I64, F64 = np.int64, np.float64
NAN, INF = float("nan"), float("inf")
POSTS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


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


    yield Case("Imputer_int64", "Imputer", "x", {"x": whole(I64, 0, 3, 4, 3)}, imputed_value_int64s=[7, 8, 9], replaced_value_int64=1, out=(I64,), **ML)
    yield Case("Imputer_int64_first", "Imputer", "x", {"x": whole(I64, 0, 3, 4, 3)}, imputed_value_int64s=[7, 8], replaced_value_int64=2, out=(I64,), **ML)
    for dtype in (I64, F32, F64):
        yield Case(f"OneHotEncoder_{dtype.__name__}", "OneHotEncoder", "x", {"x": whole(dtype, -1, 5, 6) + dtype(0.5)}, cats_int64s=[3, 0, 2], **ML)
    yield Case("OneHotEncoder_twice", "OneHotEncoder", "x", {"x": whole(I64, 0, 5, 4, 2)}, cats_int64s=[3, 0, 3, 1], **ML)
    for dtype in (F32, I64):
        three = {k: whole(dtype, 0, 9, 3, width) for k, width in (("a", 2), ("b", 4), ("c", 1))}
        yield Case(f"FeatureVectorizer_{dtype.__name__}", "FeatureVectorizer", "a b c", three, inputdimensions=[3, 2, 1], **ML)


def scores_by_label(key):
    return helper.make_sequence_type_proto(helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))


def label_cases():
    """Strings are indices of labels in a program, maps are tensors."""
    rows, few = {"x": normal(4, 3)}, [{"x": np.array([5, -1, 2, 77, 5])}, {"x": np.array([2])}]
    yield Case("ZipMap_int64", "ZipMap", "x", rows, classlabels_int64s=[4, 2, 9], labels=[4, 2, 9], out=(scores_by_label(TensorProto.INT64),), **ML)
    yield Case("ZipMap_string", "ZipMap", "x", rows, classlabels_strings=["b", "a", "c"], labels=["b", "a", "c"], out=(scores_by_label(TensorProto.STRING),), **ML)
    names = np.array(["no", "yes", "no", "perhaps"], object)
    for op, index in (("ArrayFeatureExtractor", {"i": np.array([[3, 0, 2]])}), ("Gather", {"i": np.array([1, 2, -1])})):
        yield Case(f"{op}_string", op, "t i", index, {"t": names}, out=(object,), labels=["no", "yes", "perhaps"], domain="ai.onnx.ml" if op[0] == "A" else "")
    many = {"dims": {"n": "1..8"}, "shapes": {"x": ["n"]}, **ML}
    keys = {"keys_int64s": [5, 2, 5, 9]}
    yield Case("LabelEncoder_int_float", "LabelEncoder", "x", few, **keys, values_floats=[0.5, 1.5, 7.0, 8.0], **many)
    yield Case("LabelEncoder_int_string", "LabelEncoder", "x", few, **keys, values_strings=["b", "a", "c", "b"], default_string="a", out=(object,),
               labels=["b", "a", "c"], **many)
    yield Case("LabelEncoder_far", "LabelEncoder", "x", [{"x": np.array([10 ** 15, 5, -(2 ** 63), 2 ** 63 - 1])}], keys_int64s=[10 ** 15, 5, 2 ** 63 - 1],
               values_floats=[1.0, 2.0, 3.0], default_float=-4.0, **ML)
    yield Case("LabelEncoder_near_far", "LabelEncoder", "x", [{"x": np.array([10 ** 15, 5, -(2 ** 63), 2 ** 63 - 1])}], keys_int64s=[5, 6],
               values_floats=[1.0, 2.0], **ML)
    reals = {"x": np.array([[1, NAN, 0.0], [-0.0, 2.5, INF]], F32)}
    for ml in (2, 4):
        yield Case(f"LabelEncoder_float_int_{ml}", "LabelEncoder", "x", reals, keys_floats=[1.0, NAN, -0.0, 0.0, INF], values_int64s=[3, 4, 5, 6, 7],
                   default_int64=-3, out=(I64,), ml=ml, domain="ai.onnx.ml")
    tensor = {k: helper.make_tensor(k, t, [len(v)], v) for k, t, v in (
        ("keys_tensor", TensorProto.DOUBLE, [1.0, NAN, 0.1]), ("values_tensor", TensorProto.DOUBLE, [0.3, 0.2, 0.1]), ("default_tensor", TensorProto.DOUBLE, [9.0]))}
    yield Case("LabelEncoder_tensors", "LabelEncoder", "x", {"x": np.array([0.1, NAN, F32(0.1), 1])}, out=(F64,), ml=4, domain="ai.onnx.ml", rtol=1e-12, **tensor)
    for op, out in (("int64s", I64), ("floats", F32)):
        yield Case(f"LabelEncoder_string_{op}", "LabelEncoder", "t", {}, {"t": names}, keys_strings=["yes", "maybe", "no", "yes"],
                   **{f"values_{op}": [3, 4, 5, 6] if out is I64 else [3.0, 4.0, 5.0, 6.0]}, out=(out,), **ML)
    yield Case("LabelEncoder_first", "LabelEncoder", "x", few, classes_strings=["u", "v", "w"], default_string="_", default_int64=-1, out=(object,),
               labels=["u", "v", "w", "_"], ml=1, domain="ai.onnx.ml", shapes={"x": ["n"]}, dims={"n": "1..8"})


def linear_cases():
    x = {"x": normal(6, 4)}
    many = {"dims": {"n": "1..8"}, "shapes": {"x": ["n", 4]}, **ML}
    for targets in (1, 3):
        for post in POSTS:
            yield Case(f"LinearRegressor_{targets}_{post}", "LinearRegressor", "x", x, coefficients=floats(normal(targets, 4) / 8),
                       intercepts=floats(np.full(targets, 0.25)), targets=targets, post_transform=post, **ML)
    yield Case("LinearRegressor_plain", "LinearRegressor", "x", x, coefficients=floats(normal(4)), targets=1, **ML)
    for classes in (2, 3):
        for post in POSTS:
            yield Case(f"LinearClassifier_{classes}_{post}", "LinearClassifier", "x", [x, {"x": normal(1, 4)}], coefficients=floats(normal(classes, 4) / 8),
                       intercepts=floats(np.full(classes, 0.25)), classlabels_ints=[7, 3, 9][:classes], multi_class=1, post_transform=post,
                       out=(I64, F32), **many)
    for post in POSTS[:-1]:
        yield Case(f"LinearClassifier_single_{post}", "LinearClassifier", "x", x, coefficients=floats(normal(4)), intercepts=[0.1], classlabels_ints=[7, 3],
                   post_transform=post, out=(I64, F32), **ML)
    yield Case("LinearClassifier_more", "LinearClassifier", "x", x, coefficients=floats(normal(24)), intercepts=[0.1, 0.2, 0.3], classlabels_ints=[7, 3, 5],
               out=(I64, F32), **ML)
    for classes in (1, 3):
        yield Case(f"LinearClassifier_strings_{classes}", "LinearClassifier", "x", x, coefficients=floats(normal(classes, 4)), intercepts=floats(normal(classes)),
                   classlabels_strings=["b", "a", "c"][:max(classes, 2)], out=(object, F32), labels=["b", "a", "c"], **many)


def support(classes, features, kernel, probabilities=False):
    """A random classifier with some vectors of each class."""
    per = [3 + i for i in range(classes)]
    pairs, vectors = classes * (classes - 1) // 2, sum(per)
    made = {"kernel_type": kernel, "kernel_params": [0.3, 0.5, 3.0], "vectors_per_class": per, "support_vectors": floats(normal(vectors, features)),
            "coefficients": floats(normal(classes - 1, vectors)), "rho": floats(normal(pairs))}
    return {**made, "prob_a": floats(-np.abs(normal(pairs)) - 0.5), "prob_b": floats(normal(pairs) / 4)} if probabilities else made


def support_cases():
    x = [{"x": normal(n, 5)} for n in (6, 1)]
    many = {"dims": {"n": "1..8"}, "shapes": {"x": ["n", 5]}, **ML}
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        yield Case(f"SVMRegressor_{kernel}", "SVMRegressor", "x", x, kernel_type=kernel, kernel_params=[0.3, 0.5, 2.0], n_supports=7,
                   support_vectors=floats(normal(7, 5)), coefficients=floats(normal(7)), rho=[0.25], **many)
        for classes in (2, 4):
            labels = {"classlabels_ints": [7, 3, 9, 4][:classes], "out": (I64, F32)}
            yield Case(f"SVMClassifier_{kernel}_{classes}", "SVMClassifier", "x", x, **support(classes, 5, kernel), **labels, **many)
            yield Case(f"SVMClassifier_{kernel}_{classes}_probabilities", "SVMClassifier", "x", x, **support(classes, 5, kernel, True), **labels, **many)
    yield Case("SVMRegressor_plain", "SVMRegressor", "x", x, coefficients=floats(normal(5)), kernel_params=[0.0, 0.0, 0.0], rho=[0.25], **many)
    yield Case("SVMRegressor_one_class", "SVMRegressor", "x", x, kernel_type="RBF", kernel_params=[0.3, 0.0, 0.0], n_supports=7, one_class=1,
               support_vectors=floats(normal(7, 5)), coefficients=floats(normal(7)), rho=[0.25], **many)
    for post in POSTS[:-1]:
        for classes in (2, 3):
            yield Case(f"SVMClassifier_{classes}_{post}", "SVMClassifier", "x", x, **support(classes, 5, "RBF"), classlabels_ints=[0, 1, 2][:classes],
                       post_transform=post, out=(I64, F32), **many)
    for classes in (2, 3):
        plain = {"coefficients": floats(normal(classes, 5)), "kernel_params": [0.0, 0.0, 0.0], "rho": [0.25], "out": (I64, F32)}
        yield Case(f"SVMClassifier_plain_{classes}", "SVMClassifier", "x", x, classlabels_ints=[4, 1, 2][:classes], **plain, **many)
    yield Case("SVMClassifier_strings", "SVMClassifier", "x", x, **support(3, 5, "RBF", True), classlabels_strings=["b", "a", "c"], labels=["b", "a", "c"],
               out=(object, F32), **many)
    yield Case("SVMClassifier_int64", "SVMClassifier", "x", {"x": whole(I64, -3, 4, 6, 5)}, **support(3, 5, "POLY"), classlabels_ints=[2, 0, 1],
               out=(I64, F32), **ML)


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


def splits_of(x):
    """Features that are exactly the splits, their neighbours, and what is not a number."""
    around = [F32(v) for s in (0.1, -2.0, 0.0, 1e-40) for v in (s, np.nextafter(F32(s), F32(9)), np.nextafter(F32(s), F32(-9)))]
    return np.array([*around, NAN, INF, -INF], x)[:, None]


def stump(kind, mode, split, missing=0):
    return {"nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3, "nodes_values": [split, 0.0, 0.0],
            "nodes_modes": [mode, "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
            "nodes_missing_value_tracks_true": [missing, 0, 0], f"{kind}_treeids": [0, 0], f"{kind}_nodeids": [1, 2], f"{kind}_ids": [0, 0],
            f"{kind}_weights": [1.0, 2.0]}


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ")


def split_cases():
    """Where a feature is next to a split, or missing."""
    for mode in MODES:
        for split in (0.1, -2.0, INF, -INF):
            for missing in (0, 1):
                yield Case(f"split_{mode}_{split}_{missing}", "TreeEnsembleRegressor", "x", {"x": splits_of(F32)}, n_targets=1,
                           **stump("target", mode, split, missing), **ML)
        yield Case(f"split_{mode}_double", "TreeEnsembleRegressor", "x", {"x": splits_of(F64)}, n_targets=1, **stump("target", mode, 0.1), **ML)


def mixed(kind, results, post="NONE", **more):
    """Trees whose nodes compare in different ways, some of them with tracks of missing values."""
    made = ensemble(kind, 6, 5, 5, results)
    branches = [m != "LEAF" for m in made["nodes_modes"]]
    made["nodes_modes"] = [MODES[RNG.integers(6)] if b else "LEAF" for b in branches]
    made["nodes_missing_value_tracks_true"] = [int(RNG.integers(2)) if b else 0 for b in branches]
    return {**made, "post_transform": post, **more}


def missing_values(n):
    x = whole(F32, -3, 4, n, 5)
    x[RNG.random(x.shape) < 0.3] = NAN
    return {"x": x}


def ensemble_cases():
    feeds, many = [missing_values(n) for n in (8, 1)], {"dims": {"n": "1..8"}, "shapes": {"x": ["n", 5]}, **ML}
    yield Case("missing_regressor", "TreeEnsembleRegressor", "x", feeds, n_targets=3, **mixed("target", 3), **many)
    yield Case("missing_classifier", "TreeEnsembleClassifier", "x", feeds, classlabels_int64s=[5, 2, 8], out=(I64, F32), **mixed("class", 3), **many)
    for how in ("MIN", "MAX", "AVERAGE"):
        sparse = mixed("target", 3, aggregate_function=how, base_values=[5.0, 6.0, 7.0])
        sparse["target_ids"] = [i if i != 1 else 2 for i in sparse["target_ids"]]  # no votes for target 1
        yield Case(f"votes_{how}", "TreeEnsembleRegressor", "x", feeds, n_targets=3, **sparse, **many)
    for post in POSTS:
        for targets in (1, 2):
            yield Case(f"TreeEnsembleRegressor_{targets}_{post}", "TreeEnsembleRegressor", "x", feeds, n_targets=targets, post_transform=post,
                       **{k: v for k, v in mixed("target", targets).items() if k != "post_transform"}, **many)
    double = {"x": whole(F64, -3, 4, 6, 5) / 10}
    made = mixed("class", 3)
    made["nodes_values_as_tensor"] = helper.make_tensor("v", TensorProto.DOUBLE, [len(made["nodes_values"])], np.array(made.pop("nodes_values")) / 10)
    made["class_weights_as_tensor"] = helper.make_tensor("w", TensorProto.DOUBLE, [len(made["class_weights"])], made.pop("class_weights"))
    yield Case("tensors_double", "TreeEnsembleClassifier", "x", double, classlabels_int64s=[5, 2, 8], out=(I64, F32), **made, **ML)


def two_class_cases():
    """ONNX Runtime has rules of its own for two classes."""
    feeds, many = [{"x": whole(F32, -3, 4, n, 5)} for n in (7, 1)], {"dims": {"n": "1..8"}, "shapes": {"x": ["n", 5]}, **ML}
    for ids in ((0,), (1,), (0, 1)):
        for sign in (-1, 1):
            votes = ensemble("class", 4, 4, 5, 1)
            fields = ("class_treeids", "class_nodeids", "class_weights")
            weights = [abs(w) / 6 if sign > 0 else w for w in votes["class_weights"]]
            votes = {**votes, **{f: [v for v in (weights if f == "class_weights" else votes[f]) for _ in ids] for f in fields},
                     "class_ids": [i for _ in weights for i in ids]}
            votes["class_weights"] = [w * (1 + 0.3 * i) for i, w in zip(votes["class_ids"], votes["class_weights"])]
            for base in ([], [0.25], [0.25, -0.5]):
                for post in ("NONE", "LOGISTIC", "SOFTMAX"):
                    name = f"two_{''.join(map(str, ids))}_{'plus' if sign > 0 else 'mixed'}_{len(base)}_{post}"
                    yield Case(name, "TreeEnsembleClassifier", "x", feeds, classlabels_int64s=[5, 6], post_transform=post, out=(I64, F32), **votes,
                               **({"base_values": base} if base else {}), **many)
    for base in ([], [0.1]):
        yield Case(f"one_class_{len(base)}", "TreeEnsembleClassifier", "x", feeds, classlabels_int64s=[5], out=(I64, F32), **ensemble("class", 3, 3, 5, 1),
                   **({"base_values": base} if base else {}), **many)
    yield Case("strings_3", "TreeEnsembleClassifier", "x", feeds, classlabels_strings=["b", "a", "c"], labels=["b", "a", "c"], out=(object, F32),
               **ensemble("class", 4, 4, 5, 3), **many)
    yield Case("strings_2", "TreeEnsembleClassifier", "x", feeds, classlabels_strings=["b", "a"], labels=["b", "a"], out=(object, F32),
               **ensemble("class", 4, 4, 5, 1), **many)


def tensor_of(values, dtype):
    kind = {F32: TensorProto.FLOAT, F64: TensorProto.DOUBLE, np.uint8: TensorProto.UINT8}[dtype]
    return helper.make_tensor("t", kind, [len(values)], values)


def newest(dtype, trees, depth, targets, members):
    """Random trees as TreeEnsemble has them."""
    nodes, leaves, roots, sets = [], [], [], []

    def grow_from(level):
        if level == depth:
            leaves.append((int(RNG.integers(targets)), float(RNG.standard_normal())))
            return len(leaves) - 1, 1
        at = len(nodes)
        mode = int(RNG.integers(7 if members else 6))
        nodes.append(None)
        if mode == 6:
            sets.append((at, [float(v) for v in RNG.choice(np.arange(-3, 40), RNG.integers(1, 20), replace=False)]))
        (yes, yes_leaf), (no, no_leaf) = grow_from(level + 1), grow_from(level + 1)
        nodes[at] = (mode, int(RNG.integers(5)), float(RNG.integers(-2, 3)), yes, yes_leaf, no, no_leaf, int(RNG.integers(2)))
        return at, 0

    for _ in range(trees):
        roots.append(grow_from(0)[0])
    modes, features, splits, yes, yes_leaf, no, no_leaf, missing = map(list, zip(*nodes))
    made = {"tree_roots": roots, "n_targets": targets, "nodes_modes": tensor_of(modes, np.uint8), "nodes_featureids": features,
            "nodes_splits": tensor_of(splits, dtype), "nodes_truenodeids": yes, "nodes_trueleafs": yes_leaf, "nodes_falsenodeids": no,
            "nodes_falseleafs": no_leaf, "nodes_missing_value_tracks_true": missing, "leaf_targetids": [i for i, _ in leaves],
            "leaf_weights": tensor_of([w for _, w in leaves], dtype)}
    if sets:
        made["membership_values"] = tensor_of([v for _, s in sorted(sets) for v in (*s, NAN)], dtype)
    return made


def newest_cases():
    five = {"domain": "ai.onnx.ml", "ml": 5, "dims": {"n": "1..8"}, "shapes": {"x": ["n", 5]}, "opset": 21}
    for dtype in (F32, F64):
        feeds = [{"x": missing_values(n)["x"].astype(dtype)} for n in (8, 1)]
        for how in range(4):
            yield Case(f"TreeEnsemble_{dtype.__name__}_{how}", "TreeEnsemble", "x", feeds, out=(dtype,), aggregate_function=how,
                       **newest(dtype, 4, 4, 2, False), **five)
        yield Case(f"TreeEnsemble_members_{dtype.__name__}", "TreeEnsemble", "x", [{"x": whole(dtype, -4, 42, n, 5)} for n in (8, 1)], out=(dtype,),
                   **newest(dtype, 6, 4, 1, True), **five)
    for post in range(5):
        yield Case(f"TreeEnsemble_post_{post}", "TreeEnsemble", "x", [missing_values(8)], post_transform=post, **newest(F32, 6, 3, 3, False), **five)


def lopsided_cases():
    """Trees that end one after the other, in no order: each test has a leaf on one side."""
    lengths, nodes, votes = RNG.permutation(20), [], []
    for tree, length in enumerate(lengths):
        for i in range(length):
            sides = (2 * i + 1, 2 * i + 2)
            nodes.append((tree, 2 * i, int(RNG.integers(5)), float(whole(F32, -2, 3)), "BRANCH_LEQ", *(sides if i % 2 else sides[::-1])))
            nodes.append((tree, 2 * i + 1, 0, 0.0, "LEAF", 0, 0))
        nodes.append((tree, 2 * int(length), 0, 0.0, "LEAF", 0, 0))
        votes += [(tree, n[1], 0, float(RNG.standard_normal())) for n in nodes if n[0] == tree and n[4] == "LEAF"]
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    made = {f"nodes_{n}": list(v) for n, v in zip(names, zip(*nodes))}
    made |= {f"target_{n}": list(v) for n, v in zip(("treeids", "nodeids", "ids", "weights"), zip(*votes))}
    feeds = [{"x": whole(F32, -3, 4, n, 5)} for n in (7, 1)]
    yield Case("TreeEnsembleRegressor_lopsided", "TreeEnsembleRegressor", "x", feeds, n_targets=1, **made, dims={"n": "1..8"}, shapes={"x": ["n", 5]},
               **ML)


def chain_cases():
    """Sets of categories as questions for one of them after the other, which all lead to the same tests."""
    leaf = (0, 0, "", 0, 0)
    rows = ((0, 0, "EQ", 1, 2), (1, 0.2, "LEQ", 3, 4), (0, 3, "EQ", 1, 5), leaf, leaf, (0, 7, "EQ", 1, 6), (1, -0.5, "LEQ", 7, 8), leaf,
            (0, 5, "EQ", 9, 10), (1, 1, "LEQ", 11, 12), (0, 4, "EQ", 9, 13), leaf, leaf, leaf)
    for missing in ([0] * 14, [0, 0, 1] + [0] * 11):
        made = {"nodes_treeids": [0] * 14, "nodes_nodeids": list(range(14)), "nodes_featureids": [r[0] for r in rows],
                "nodes_values": [float(r[1]) for r in rows], "nodes_modes": ["BRANCH_" + r[2] if r[2] else "LEAF" for r in rows],
                "nodes_truenodeids": [r[3] for r in rows], "nodes_falsenodeids": [r[4] for r in rows], "nodes_missing_value_tracks_true": missing,
                "target_treeids": [0] * 6, "target_nodeids": [3, 4, 7, 11, 12, 13], "target_ids": [0] * 6,
                "target_weights": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]}
        x = np.array([(a, b) for a in (-1, 0, 1, 3, 4, 5, 6, 7, 8) for b in (-1, 0.5, 2)], F32)
        x[6 if any(missing) else 0, 0] = np.nan if any(missing) else -2
        yield Case(f"TreeEnsembleRegressor_chains_{sum(missing)}", "TreeEnsembleRegressor", "x", [{"x": x}, {"x": x[:1]}], n_targets=1, **made,
                   dims={"n": "1..32"}, shapes={"x": ["n", 2]}, **ML)


def difference_cases():
    """Tests are differences from the splits where all numbers are finite and features are few, else comparisons."""
    most = float(np.finfo(F32).max)
    ends = np.array([most, -most, np.nextafter(F32(most), F32(0)), INF, -INF, NAN, 0.0, -0.0, 1e-45, -1e-45], F32)[:, None]
    for mode in MODES:
        for split in (most, -most, float(np.nextafter(F32(most), F32(0))), 0.0):
            yield Case(f"split_{mode}_{split:.9g}_ends", "TreeEnsembleRegressor", "x", {"x": ends}, n_targets=1, **stump("target", mode, split), **ML)
    rng = np.random.default_rng(20261127)
    for features, name in ((3, "few"), (400, "many")):
        made = ensemble("target", 6, 5, 3, 2)
        made["nodes_missing_value_tracks_true"] = [int(m != "LEAF" and rng.integers(2)) for m in made["nodes_modes"]]
        feeds = [{"x": rng.choice(np.array([NAN, INF, -INF, most, -2, -1, 0, 1, 2], F32), (n, features))} for n in (8, 1)]
        yield Case(f"features_{name}", "TreeEnsembleRegressor", "x", feeds, n_targets=2, **made, dims={"n": "1..8"}, shapes={"x": ["n", features]}, **ML)


def leaf_cases():
    """Several weights at one leaf, as exporters write the number of a leaf for each class: of one target the first counts, of several their sum."""
    rng = np.random.default_rng(20261129)
    feeds = [{"x": rng.standard_normal((n, 4)).astype(F32)} for n in (7, 1)]
    for targets, how in ((1, "SUM"), (1, "AVERAGE"), (1, "MAX"), (2, "SUM")):
        made = ensemble("target", 3, 3, 4, targets)
        for key in ("treeids", "nodeids", "ids"):
            made[f"target_{key}"] = made[f"target_{key}"] * 2
        made["target_weights"] = made["target_weights"] + [w + 10 for w in made["target_weights"]]
        yield Case(f"leaves_{targets}_{how}", "TreeEnsembleRegressor", "x", feeds, n_targets=targets, aggregate_function=how, **made,
                   dims={"n": "1..8"}, shapes={"x": ["n", 4]}, **ML)
    # A single tree, whose class is known by leaf: ties, negative votes, leaves with votes for some classes or none; base values.
    for base in ({}, {"base_values": [0.5, 0.25, -0.5, 0.0, 1.0]}):
        made = ensemble("class", 2, 5, 4, 5)  # the first one is a leaf alone
        made["class_weights"] = [float(rng.integers(-1, 2)) for _ in made["class_weights"]]
        kept = {"nodes": [i for i, tree in enumerate(made["nodes_treeids"]) if tree],
                "class": [i for i, tree in enumerate(made["class_treeids"]) if tree and rng.random() < (1 if base else 0.5)]}
        made = {key: [values[i] for i in kept[key[:5]]] for key, values in made.items()}
        yield Case(f"leaves_of_classes{'_base' if base else ''}", "TreeEnsembleClassifier", "x", [{"x": rng.standard_normal((n, 4)).astype(F32)} for n in (40, 1)],
                   classlabels_int64s=[5, 2, 8, 1, 9], out=(I64, F32), **base, **made, dims={"n": "1..40"}, shapes={"x": ["n", 4]}, **ML)


ALL = (feature_cases, label_cases, linear_cases, support_cases, tree_cases, split_cases, ensemble_cases, two_class_cases, newest_cases,
       lopsided_cases, chain_cases, difference_cases, leaf_cases)


def main():
    return cases.run([case for group in ALL for case in group()], contrib.check, cases.parser(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
