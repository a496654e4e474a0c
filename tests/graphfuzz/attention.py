"""Attention, rotary embedding, and what comes with them."""

import numpy as np

from builder import BOOL, I64, op

F32, F16 = np.dtype(np.float32), np.dtype(np.float16)


@op("Attention", 23, weight=1.5)
def attention(b):
    dtype = b.dtype({F32, F16})
    batch, heads, group, steps, keys, size, values = (b.whole(1, 2), b.whole(1, 2), b.whole(1, 2), b.whole(1, 4), b.whole(1, 5),
                                                      2 * b.whole(1, 3), b.whole(1, 4))
    flat = b.chance(0.4)

    def tensor(h, s, d):
        return b.like(dtype, (batch, s, h * d) if flat else (batch, h, s, d), -3, 3)

    inputs = [tensor(heads * group, steps, size), tensor(heads, keys, size), tensor(heads, keys, values), "", "", ""]
    past = b.whole(1, 3) if b.chance(0.25) else 0
    if b.chance(0.4):
        shape = b.choice([(steps, keys + past), (batch, 1, steps, keys + past), (batch, heads * group, steps, keys + past)])
        inputs[3] = b.fresh(BOOL if b.chance(0.3) else dtype, shape, -2, 2)
        if b.x(inputs[3]).dtype == BOOL:
            inputs[3] = b.constant(np.ones(shape, bool))
    if past:
        inputs[4:6] = [b.fresh(dtype, (batch, heads, past, size), -3, 3), b.fresh(dtype, (batch, heads, past, values), -3, 3)]
    attributes = {"is_causal": b.choice([None, 0, 1]) if not past and keys == steps else None, "scale": b.choice([None, 0.3]),
                  "softcap": b.choice([None, None, 2.0])}
    if flat:
        attributes.update(q_num_heads=heads * group, kv_num_heads=heads)
    b.node("Attention", inputs, 3, keep=[True, bool(past), bool(past)], **attributes)


@op("RotaryEmbedding", 23)
def rotary_embedding(b):
    dtype = b.dtype({F32, F16})
    batch, heads, steps, size, most = b.whole(1, 2), b.whole(1, 3), b.whole(1, 4), 4 * b.whole(1, 2), 6
    turned = b.choice([None, size // 2])
    half = (turned or size) // 2
    flat = b.chance(0.4)
    x = b.like(dtype, (batch, steps, heads * size) if flat else (batch, heads, steps, size), -3, 3)
    cached = b.chance(0.6)
    shape = (most, half) if cached else (batch, steps, half)
    inputs = [x, b.fresh(dtype, shape, -1, 1), b.fresh(dtype, shape, -1, 1), b.fresh(I64, (batch, steps), 0, most - 1) if cached else ""]
    b.node("RotaryEmbedding", inputs, interleaved=b.choice([None, 0, 1]), rotary_embedding_dim=turned,
           num_heads=heads if flat else None)


@op("CausalConvWithState", 27, weight=0.5)
def causal_conv(b):
    batch, channels, steps, kernel = b.whole(1, 2), b.whole(1, 3), b.whole(1, 5), b.whole(1, 3)
    inputs = [b.like(F32, (batch, channels, steps), -3, 3), b.fresh(F32, (channels, 1, kernel), -1, 1),
              b.fresh(F32, (channels,), -1, 1) if b.chance(0.5) else "",
              b.fresh(F32, (batch, channels, kernel - 1), -1, 1) if b.chance(0.4) and kernel > 1 else ""]
    b.node("CausalConvWithState", inputs, 2, activation=b.choice([None, "silu"]))
