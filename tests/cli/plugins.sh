# Plug-ins: their passes, backends, readers and planners at work, and what is refused of them.
cat >net.etir <<EOF
graph @forward level(edge) {
  %0: f32[2, 3] = input "a"
  %1: f32[3, 2] = input "x"
  %2: f32[2, 2] = input "b"
  %3: f32[2, 2] = aten::mm(%0, %1) loc("mm1", "MatMul", 0)
  %4: f32[2, 2] = aten::add.Tensor(%3, %2, 1) loc("add1", "Add", 1)
  %5: f32[2, 2] = aten::sub.Tensor(%4, %2, 1) loc("sub", "Sub", 2)
  %6: f32[2, 2] = aten::mm(%5, %2) loc("mm2", "MatMul", 3)
  %7: f32[2, 2] = aten::add.Tensor(%6, %5, 1) loc("add2", "Add", 4)
  output %7 "z"
}
EOF
cat >chain.etir <<EOF
graph @forward level(edge) {
  %0: f32[4] = input "x"
  %1: f32[4] = aten::neg(%0) loc("neg1", "Neg", 0)
  %2: f32[4] = aten::relu(%1) loc("relu", "Relu", 1)
  %3: f32[4] = aten::neg(%2) loc("neg2", "Neg", 2)
  output %3 "y"
}
EOF
cat >branch.etir <<EOF
graph @forward level(edge) {
  %0: f32[4] = input "x"
  %1: bool[] = input "c"
  %2: f32[4] = aten::neg(%0)
  control::if(%1)
  %3: f32[4] = aten::neg(%2)
  control::else()
  %4: f32[4] = aten::neg(%0)
  %5: f32[4] = control::endif([%3], [%4])
  output %5 "y"
}
EOF
sed 's/level(edge)/level(core)/' chain.etir >core.etir
short() { sed 's/\([0-9]\.[0-9]\{3\}\)[0-9]*/\1/g'; } # the sums depend on the machine
demo="--plugin $plugins/demo.so --backend demo"
faulty="--plugin $plugins/faulty.so"

echo "## the demo backend"
t backends --plugin $plugins/demo.so
t lower net.etir $demo:max_value=4,note=tutorial -o net.pte --explain --artifacts stages
t lower net.etir $demo -o again.pte -q --explain=table
t lower net.etir $demo:ops=mm -o again.pte -q --explain
t lower net.etir $demo:skip=mm2 -o again.pte -q --explain
t lower net.etir $demo --backend xnnpack:min-ops=1 -o again.pte -q --explain=table
t lower net.etir $demo:whole -o no.pte
t lower net.etir $demo:max_value=none -o no.pte
t inspect net.pte --plugin $plugins/demo.so -v --extract 1=one --extract 2=two
cat one two stages/06-to_backend.delegate-2.etir
t inspect net.pte
t verify net.pte --plugin $plugins/demo.so
t verify net.pte
t run net.pte --plugin $plugins/demo.so --random | short
t run net.etir --random | short
t run net.pte --random
t print net.pte --plugin $plugins/demo.so
t size net.pte --plugin $plugins/demo.so
echo 'delegates: {count: 3, memory: 1K}' >budget.yaml
t lower net.etir $demo --budget budget.yaml -o again.pte
LC_ALL=C sed 's/add 3 2/add 9 2/' net.pte >hostile.pte
t verify hostile.pte --plugin $plugins/demo.so

echo "## a pass, a backend and a planner"
unset FAULT
t passes $faulty | grep -e exchange -e '^\$'
t lower chain.etir $faulty --pass exchange@edge -o chain.pte
t lower core.etir $faulty --pass exchange@edge -o chain.pte -q --print-after exchange
t lower chain.etir $faulty --pass exchange@to_executorch:before-eliminate_views -o before.pte -q
t lower chain.etir $faulty --pass exchange -o again.pte -q
t lower chain.etir $faulty --pass exchange@edge:before-decompose -o no.pte
t lower chain.etir $faulty --pass exchange@core -o no.pte
t lower chain.etir $faulty --pass exchang@edge -o no.pte
t opt chain.etir $faulty --pass exchange --no-locations
t lower chain.etir $faulty --backend negate:level=3 -o negate.pte --explain
t run negate.pte $faulty --random | short
t run chain.etir --random | short
t lower chain.etir $faulty --backend negate:level=x -o no.pte
t lower chain.etir $faulty --backend negate:depth=x -o no.pte
printf 'backend: {negate: {depth: 1}}\nplugin: %s/faulty.so\n' "$plugins" >plugin.yaml
t lower chain.etir --recipe plugin.yaml -o no.pte
t lower chain.etir $faulty --backend negat -o no.pte
t lower chain.etir $faulty --plan row -o row.pte
t lower chain.etir $faulty --plan ro -o no.pte
t lower chain.etir $faulty --plan other -o no.pte
t lower core.etir $faulty --pass exchange@to_executorch:before-schedule_nodes -o no.pte
t lower chain.etir $faulty --memory small=16,large=1K --plan row -o banks.pte
t inspect row.pte

echo "## what is refused when it is read"
for FAULT in abi name "pass name" "pass name empty" "pass function" "pass summary" "pass import" "pass emit" "pass level" "pass there" "backend name" \
  "backend id" "backend function" "backend summary" "backend settings" "backend setting" "backend pass" "backend there" "planner name" "planner function" "planner there" "reader id" \
  "reader function" "reader there" "pass all" "backend portable" "setting whole" "setting twice"; do
  export FAULT
  echo "# $FAULT"
  t lower chain.etir $faulty -o no.pte
done
unset FAULT
t lower chain.etir $faulty $faulty -o no.pte
t lower chain.etir --plugin $plugins/empty.so -o no.pte
t lower chain.etir --plugin missing.so -o no.pte
echo text >text.so
t lower chain.etir --plugin ./text.so -o no.pte

echo "## faults of what it does"
for FAULT in number dependent "changes in partition" "changes in preprocess" "no bytes" "input unknown" "input inside" "input missing" data key transposes specs "spec without bytes" code "huge code" \
  "tags in preprocess" "tags of others" refuses "no message" "refusals away" "needs refuses" "needs is silent" "needs inputs" "needs data" "needs no keys" "needs no text" "check rank" "check size"; do
  export FAULT
  echo "# $FAULT"
  t lower chain.etir $faulty --backend negate -o no.pte
done
for FAULT in regions control; do
  export FAULT
  echo "# $FAULT"
  t lower branch.etir $faulty --backend negate -o no.pte
done
for FAULT in "wrong graph" "constant without bytes" "fails in silence" "error ignored" "no outputs" "an output twice" "name of an output" "name of an input" \
  "type of an output" "type of a rule" "level of the graph" "name of the graph"; do
  export FAULT
  echo "# $FAULT"
  t lower core.etir $faulty --pass exchange@edge -o no.pte
done
export FAULT="no reason"
t lower chain.etir $faulty --backend negate -o reason.pte -q --explain
rm reason.pte
export FAULT="another value"
t lower core.etir $faulty --pass exchange@edge -o another.pte -q
rm another.pte
for FAULT in overlap alignment outside huge; do
  export FAULT
  echo "# $FAULT"
  t lower net.etir $faulty --plan row -o no.pte
  t lower net.etir $faulty --memory small=64,large=1K --plan row -o no.pte
done
export FAULT=proof
echo "# proof"
t lower net.etir $faulty --plan row -o no.pte

echo "## readers"
export FAULT="only what is needed"
t lower chain.etir $faulty --backend negate -o least.pte -q
t run least.pte $faulty --random | short
for FAULT in "needs refuses" "needs is silent" "needs inputs" "needs data" "needs no keys" "check rank" "check size"; do
  export FAULT
  echo "# $FAULT"
  t verify least.pte $faulty
done
for FAULT in "needs no keys" "run size" "run rank" "run memory"; do
  export FAULT
  echo "# $FAULT"
  t run least.pte $faulty --random
done
export FAULT="needs no keys"
t size least.pte $faulty
export FAULT="describe nothing"
t inspect least.pte $faulty -v | grep -e reader -e exit
export FAULT="describe memory"
t inspect least.pte $faulty -v | grep -e reader -e exit -e memory
unset FAULT
t lower chain.etir $faulty --backend negate -o least.pte -q --artifacts readers
export FAULT="needs inputs"
t lower readers/06-to_backend.etir $faulty -o no.pte
rm least.pte
unset FAULT
t lower chain.etir $faulty --backend negate -o least.pte -q

echo "## faults that end the process"
for FAULT in removes frees exits "backend exits"; do
  export FAULT
  echo "# $FAULT"
  t lower core.etir $faulty --pass exchange@edge --backend negate -o no.pte | sed 's/\.c:[0-9]*/.c:LINE/'
done
export FAULT="name of the graph"
t lower core.etir $faulty --pass exchange@edge --print-after exchange -o no.pte | sed 's/\.c:[0-9]*/.c:LINE/; s/ of [0-9]*$/ of N/'
export FAULT="run exits"
t run least.pte $faulty --random
export FAULT="ends at once" # nobody can report that; no output appears
t lower chain.etir $faulty --backend negate -o no.pte --report no.html -MD
ls -A no.* .no* 2>/dev/null
export FAULT="check exits"
t verify least.pte $faulty
t lower core.etir $faulty --backend negate -o no.pte
rm least.pte
ls *.pte
