# Programs with test sets: shown, verified, run.
t lower $data/relu.onnx --dim batch=1..2 -o b.pte --bundle $data/x24.npy -q
t inspect b.bpte
t verify b.bpte b.pte
t run b.bpte
t run b.bpte --method forward --rtol 0 --atol 0
t print b.bpte --no-locations

# Inputs on the command line go before the test sets.
t run b.bpte --random
t run b.bpte --random --atol 1
t run b.pte --rtol 1e-3
t run b.bpte --output out
t run b.bpte --rtol -1
t run b.bpte --method other

# From standard input; the other commands say what it is.
t inspect - --json <b.bpte
t verify - <b.bpte
t run - <b.bpte
t size b.bpte
t lower b.bpte -o no.pte

# The sets of a method are one series of calls.
python3 - <<'Y'
import struct
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 3), }".ljust(117) + "\n"
with open("calls.npy", "wb") as f:
    f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<18f", *range(18)))
Y
t lower $data/accumulate.onnx --state h:hn -o s.pte --bundle calls.npy -q
t run s.bpte

# The largest element of the inputs is another one: by its bytes, as the outputs lie before it.
python3 - <<'Y'
import struct
data = open("b.bpte", "rb").read()
largest = max(struct.unpack("<8f", open("../data/x24.npy", "rb").read()[-32:]))
at = data.rfind(struct.pack("<f", largest))
for name, value in ("near", largest * 1.0001), ("far", largest + 1), ("nan", float("nan")):
    open(name + ".bpte", "wb").write(data[:at] + struct.pack("<f", value) + data[at + 4:])
open("short.bpte", "wb").write(data[:-8])
open("method.bpte", "wb").write(data.replace(b"\x07\0\0\0forward\0", b"\x07\0\0\0fOrward\0", 1))
Y
t run near.bpte
t run near.bpte --rtol 1e-3
t run far.bpte --rtol 1e-3
t run nan.bpte --rtol 1e-3
t verify far.bpte
t inspect short.bpte
t verify short.bpte
cp b.pte renamed.bpte
t run renamed.bpte
for command in verify run; do t $command method.bpte; done
