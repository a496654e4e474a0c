#!/bin/sh
# etc by FetchContent: another project builds it from the sources, links it, lowers a model with it, and gets nothing else of it: no flags, no tests,
# nothing to install.
# ETC: the etc command, to compare with; PYTHON: a Python with onnx and numpy.
. "$(dirname "$0")/../common.sh"
"$PYTHON" "$here/../mlp.py" model.onnx

# Not optimized, which builds in half of the time.
cmake -S "$here" -B build -DCMAKE_BUILD_TYPE=Debug -DETC_SOURCE="$here/../.." -DMODEL="$work/model.onnx" >configure.log || { cat configure.log; exit 1; }
cmake --build build --parallel "${ETC_JOBS:-2}" --target app app_static model >build.log || { tail -n 20 build.log; exit 1; }

etc lower -q model.onnx -o model.pte
build/app model.onnx app.pte
build/app_static model.onnx app_static.pte
for program in app.pte app_static.pte build/model.pte; do same model.pte "$program"; done

# The files of the project are compiled with what it says, and with include/ of etc.
grep '"command".*library/lower\.c' build/compile_commands.json | grep -o ' -[DIWf][^ ]*' | sort -u >flags.txt
case $(cat flags.txt) in " -I"*/include) ;; *) cat flags.txt; fail "etc hands flags on" ;; esac
[ "$(wc -l <flags.txt)" = 1 ] || { cat flags.txt; fail "etc hands flags on"; }
cmake --install build --prefix installed >/dev/null
[ "$(find installed -type f)" = installed/bin/app_static ] || fail "$(find installed -type f | wc -l) files are installed, instead of one"
[ -z "$(find build -name CTestTestfile.cmake -exec grep add_test {} +)" ] || fail "the tests of etc are part of the project"
echo "subproject: ok"
