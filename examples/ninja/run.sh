#!/bin/sh
. "$(dirname "$0")/../common.sh"

# Its path may have spaces.
mkdir "a folder"
ln -s "$ETC" "a folder/etc"
ETC="$work/a folder/etc"

cp "$here/../digits/digits.onnx" .
"$PYTHON" "$here/../mlp.py" mlp.onnx
sed "s#^etc = .*#etc = $ETC#" "$here/build.ninja" >build.ninja

# made NAME...: ninja makes just these again.
made() {
  ninja >ninja.txt || { cat ninja.txt >&2; fail "ninja failed"; }
  got=$(sed -n 's/.*LOWER \([a-z]*\)\.pte$/\1/p' ninja.txt | sort | xargs)
  [ "$got" = "$*" ] || { cat ninja.txt >&2; fail "made '$got' and not '$*'"; }
}

made digits mlp
etc verify digits.pte mlp.pte
made
touch mlp.onnx
made mlp
made
rm digits.pte
made digits
echo "ninja: ok"
