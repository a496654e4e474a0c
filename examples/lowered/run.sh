#!/bin/sh
. "$(dirname "$0")/../common.sh"

"$PYTHON" "$here/model.py"
etc lower whole.onnx --backend xnnpack -o whole.pte
etc run whole.pte --input left=left.npy --input right=right.npy --output whole

# runs NAME: the program gives what the model gives that has the encoder written out.
runs() {
  etc verify "$1.pte"
  etc run "$1.pte" --input left=left.npy --input right=right.npy --output "$1"
  "$PYTHON" -c 'import numpy, sys; numpy.testing.assert_allclose(numpy.load(sys.argv[1] + "/distance.npy"), numpy.load("distance.npy"), 1e-4, 1e-5)' "$1"
}

# One delegate for the whole encoder, called twice; its code and weights are in the program once.
etc lower encoder.onnx --backend xnnpack:whole -o encoder.pte
etc lower siamese.onnx --lowered com.acme.Encoder=encoder.pte -o siamese.pte
runs siamese
etc inspect siamese.pte >inspect.txt
says "delegates: 1, called 2 times" inspect.txt
[ "$(wc -c <siamese.pte)" -lt $(($(wc -c <encoder.pte) + 4096)) ] || fail "the encoder is in the program twice"

# A program of kernels goes the way of the rest: here to the backend.
etc lower encoder.onnx -o kernels.pte
etc lower siamese.onnx --lowered com.acme.Encoder=kernels.pte --backend xnnpack -o again.pte
runs again

# ExecuTorch's runtime agrees, where it is installed.
"$PYTHON" - <<'END'
import numpy
try:
    from executorch.runtime import Runtime
except ImportError:
    print("executorch is not installed: its runtime is not asked")
else:
    import torch
    for name in ("siamese.pte", "again.pte"):
        method = Runtime.get().load_program(name).load_method("forward")
        out = method.execute([torch.from_numpy(numpy.load(side)) for side in ("left.npy", "right.npy")])
        numpy.testing.assert_allclose(out[0].numpy(), numpy.load("distance.npy"), 1e-4, 1e-5)
END

# What does not fit is refused.
refused 1 "operator 'com.acme.Encoder' of opset 1 is not supported" "$ETC" lower siamese.onnx -o bad.pte
refused 1 "'whole.pte' has 2 and 1" "$ETC" lower siamese.onnx --lowered com.acme.Encoder=whole.pte -o bad.pte
refused 2 "no node has the operator 'com.acme.Decoder'" "$ETC" lower siamese.onnx --lowered com.acme.Encoder=encoder.pte --lowered com.acme.Decoder=encoder.pte -o bad.pte
echo "lowered: ok"
