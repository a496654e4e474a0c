#!/bin/sh
. "$(dirname "$0")/../common.sh"

# Its path may have spaces.
mkdir "a folder"
ln -s "$ETC" "a folder/etc"
ETC="$work/a folder/etc"

cp "$here/Makefile" "$here/../digits/digits.onnx" .
"$PYTHON" "$here/../mlp.py" mlp.onnx

# made NAME...: make makes just these again.
made() {
  make -j2 ETC="$ETC" >make.txt 2>make.err || { cat make.err >&2; fail "make failed"; }
  got=$(sed -n 's/.* -o \([a-z]*\)\.pte .*/\1/p' make.txt | sort | xargs)
  [ "$got" = "$*" ] || { cat make.txt >&2; fail "made '$got' and not '$*'"; }
}

made digits mlp
etc verify digits.pte mlp.pte
made
touch mlp.onnx
made mlp
made
touch Makefile
made digits mlp

# On an error make stops, and the program of before stays.
cp digits.pte before.pte
printf 'no model' >digits.onnx
! make ETC="$ETC" >make.txt 2>&1 || fail "make goes on without a model"
same digits.pte before.pte
echo "make: ok"
