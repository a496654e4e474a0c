"""Cases of operators.py: NonMaxSuppression."""

import numpy as np

from single_node import RNG, Case, ints, normal


def selection_cases():
    """So many boxes that they are compared as they are taken, and not each with each."""
    corners = np.sort(RNG.random((2, 700, 2, 2)).astype(np.float32), 2).reshape(2, 700, 4)
    scores = RNG.random((2, 3, 700)).astype(np.float32)
    for centre in (0, 1):
        for limit, overlap, least in ((5, 0.3, 0.0), (20, 0.1, 0.5), (300, 0.5, 0.9)):
            yield Case(f"NonMaxSuppression_many_{centre}_{limit}", "NonMaxSuppression", ["b", "s", "m", "i", "t"],
                       {"b": corners, "s": scores}, {"m": ints(limit), "i": np.array([overlap], np.float32), "t": np.array([least], np.float32)},
                       out_type=np.int64, center_point_box=centre)
    yield Case("NonMaxSuppression_8400", "NonMaxSuppression", ["b", "s", "m", "i"],
               {"b": normal(1, 8400, 4), "s": normal(1, 4, 8400)}, {"m": ints(30), "i": np.array([0.4], np.float32)}, out_type=np.int64)
    own = np.random.default_rng(13)  # so that the cases behind keep their values
    low = own.random((2, 1500, 2), dtype=np.float32) * 900
    spread = np.concatenate([low, low + own.random((2, 1500, 2), dtype=np.float32) * 60 + 1], 2)
    spread[:, 700:720, 2:] = spread[:, 700:720, :2]  # boxes without area
    ranks = own.random((2, 2, 1500), dtype=np.float32)
    for limit in (1500, 1 << 40):  # of which more than a thousand are taken
        yield Case(f"NonMaxSuppression_all_{limit}", "NonMaxSuppression", ["b", "s", "m", "i"], {"b": spread, "s": ranks},
                   {"m": ints(limit), "i": np.array([0.6], np.float32)}, out_type=np.int64)
    for limit in (0, 7, 2000):
        yield Case(f"NonMaxSuppression_limit_at_run_time_{limit}", "NonMaxSuppression", ["b", "s", "m", "i", "t"],
                   {"b": spread[:, :300], "s": ranks[:, :, :300], "m": ints(limit)},
                   {"i": np.array([0.3], np.float32), "t": np.array([0.4], np.float32)}, out_type=np.int64)
    yield Case("NonMaxSuppression_none_above", "NonMaxSuppression", ["b", "s", "m", "i", "t"], {"b": spread[:, :50], "s": ranks[:, :, :50]},
               {"m": ints(9), "i": np.array([0.3], np.float32), "t": np.array([2], np.float32)}, out_type=np.int64)
    # Boxes that no score keeps are left out first, where scores are many: all, most, and none of them.
    hidden = ranks.copy()
    hidden[0, 1, ::7] = np.nan
    for least in (2, 0.97, -1):
        yield Case(f"NonMaxSuppression_kept_above_{least}", "NonMaxSuppression", ["b", "s", "m", "i", "t"],
                   {"b": spread, "s": hidden, "t": np.array([least], np.float32)}, {"m": ints(9), "i": np.array([0.3], np.float32)}, out_type=np.int64)
    # The best boxes of each group first: they are enough, of some groups, of none; many scores are equal.
    equal = np.floor(own.random((2, 2, 1500), dtype=np.float32) * 64) / 64
    low = np.floor(spread[:, :750, :2] / 300) * 300 + own.random((2, 750, 2), dtype=np.float32) * 4
    close = np.concatenate([np.concatenate([low, low + 30], 2), spread[:, 750:]], 1)  # nine objects, then many
    near = np.arange(1500) < 750
    for name, scores in (("enough", equal + np.float32([~near, ~near])), ("some", equal + np.float32([near, ~near])),
                         ("none", equal + np.float32([near, near])), ("equal", np.floor(equal * 4))):
        yield Case(f"NonMaxSuppression_best_first_{name}", "NonMaxSuppression", ["b", "s", "m", "i", "t"], {"b": close, "s": scores},
                   {"m": ints(60), "i": np.array([0.5], np.float32), "t": np.array([0.01], np.float32)}, out_type=np.int64)
    yield from kept_classes(spread[:1])


def kept_classes(boxes):
    """Classes without a box above the lowest score are left out first: some, all, and none of them; one has a NaN."""
    own = np.random.default_rng(20261130)
    scores = own.random((1, 12, boxes.shape[1]), dtype=np.float32)
    scores[0, ::3] /= 4
    scores[0, 4, 5] = scores[0, 6, 3] = np.nan
    for limit in (9, 1000):  # the best boxes first, all boxes
        for least in (0.5, 0.999, -1, 2):
            yield Case(f"NonMaxSuppression_kept_classes_{limit}_{least}", "NonMaxSuppression", ["b", "s", "m", "i", "t"], {"b": boxes, "s": scores},
                       {"m": ints(limit), "i": np.array([0.3], np.float32), "t": np.array([least], np.float32)}, out_type=np.int64)


def odd_selection_cases():
    """Boxes on a grid (many overlaps are exactly the threshold), empty, infinite, NaN or too large for an area, and infinite scores."""
    own = np.random.default_rng(20261127)
    for count, (batches, classes) in ((12, (2, 3)), (90, (1, 2))):
        boxes = own.integers(0, 5, (batches, count, 4)).astype(np.float32)
        scores = (own.permutation(batches * classes * count) / 256).reshape(batches, classes, count).astype(np.float32)
        for k, odd in enumerate((np.inf, np.nan, 1e25, -np.inf)):
            boxes[:, k::9, k] = odd
        boxes[:, 5::9, 2] = boxes[:, 5::9, 0]
        scores[:, :, 7] = np.inf
        for overlap in (0, 0.25, 0.5, 1):
            yield Case(f"NonMaxSuppression_odd_{count}_{overlap}", "NonMaxSuppression", ["b", "s", "m", "i"], {"b": boxes, "s": scores},
                       {"m": ints(40), "i": np.array([overlap], np.float32)}, out_type=np.int64)
