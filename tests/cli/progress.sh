# What a user sees who waits at a terminal.
python3 $data/../progress.py "$ETC" $data/relu.onnx
