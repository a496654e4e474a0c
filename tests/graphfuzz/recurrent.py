"""LSTM, GRU and RNN."""

import numpy as np

from builder import op

I32 = np.dtype(np.int32)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def register(name):
    @op(name, 7, weight=0.8)
    def recurrent(b):
        x = b.operand(b.types(name) & {np.dtype(np.float32)}, 3, 3, low=-5, high=5, least=1, where=lambda v: b.fixed(v.shape[2]) and b.fixed(v.shape[0]))
        dtype, (steps, batch, width) = b.x(x).dtype, b.x(x).shape
        if b.opset >= 14 and b.chance(0.2) and b.fixed(batch):
            steps, batch = batch, steps
            layout = 1
        else:
            layout = None
        hidden, direction = b.whole(1, 4), b.choice(["forward", "reverse", "bidirectional"])
        d = 2 if direction == "bidirectional" else 1
        gates = GATES[name] * hidden
        inputs = [x, b.fresh(dtype, (d, gates, width), -1, 1), b.fresh(dtype, (d, gates, hidden), -1, 1),
                  b.fresh(dtype, (d, 2 * gates), -1, 1) if b.chance(0.6) else "",
                  b.fresh(I32, (batch,), 1, steps) if b.chance(0.25) and b.fixed(batch) else ""]
        states = (batch, d, hidden) if layout else (d, batch, hidden)
        inputs.append(b.fresh(dtype, states, -1, 1) if b.chance(0.4) else "")
        if name == "LSTM":
            inputs.append(b.fresh(dtype, states, -1, 1) if b.chance(0.4) else "")
            inputs.append(b.fresh(dtype, (d, 3 * hidden), -1, 1) if b.chance(0.2) else "")
        attributes = {"hidden_size": hidden, "direction": direction if direction != "forward" or b.chance(0.5) else None,
                      "clip": b.choice([None, None, 0.5]), "layout": layout}
        if name == "GRU":
            attributes["linear_before_reset"] = b.choice([None, 0, 1])
        outputs = 3 if name == "LSTM" else 2
        keep = [b.chance(0.7) for _ in range(outputs)]
        keep[b.whole(0, outputs - 1)] = True
        b.node(name, inputs, outputs, keep=keep, **attributes)


for _name in GATES:
    register(_name)
