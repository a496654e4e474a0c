# A program as an array: the header, the assembler, names.
"$ETC" lower $data/add.onnx -o add.pte -q
t embed add.pte -o add.c
cat add.h
sed -n 1,4p add.c
t embed add.pte -o sub.S --header sub_memory.h --name network --section .qspi --align 64 -MD -MTsub.o
cat sub.S sub.S.d
sed 's/ADD_PTE/NETWORK/g; s/add_pte/network/' add.h | diff - sub_memory.h
"$ETC" embed add.pte -q -o add.cpp -MFadd.d && sed -n 1,4p add.cpp && cat add.d
# Names that are no identifiers become such, strings stay what they are.
cp add.pte '3 x*?"é.pte'
t embed '3 x*?"é.pte' -o odd.S
sed -n 's/.*\(made\|incbin\)/\1/p; s/^extern//p' odd.S odd.h
# Methods in other letters than ASCII stay apart.
"$ETC" lower --method ä=$data/add.onnx --method ö=$data/add.onnx -q -o letters.pte
t embed letters.pte -o letters.c -q
grep _NAME letters.h
# Methods, banks, states, constant methods, dynamic dims, external data.
"$ETC" lower --method Encode-1=$data/relu.onnx --method decode=$data/add.onnx --dim batch=1..8 --memory sram=16,dram=1K --constant n=-3 --constant s=2.5 --constant yes=true --constant labels='"a?b", "*/"' -q -o two.pte
t embed two.pte -o two.c -q
grep -e ARENA -e NAME -e METHODS -e dynamic -e INPUTS -e VALUE two.h
# The alignment that the plan was asked for, also where one tensor at offset 0 is all there is.
"$ETC" lower --method one=$data/accumulate.onnx --method two=$data/accumulate.onnx --state h:hn --share-state h -q -o states.pte
t embed states.pte -o states.c
grep -A 2 'STATES_PTE_ARENA_2 ' states.h
"$ETC" lower $data/relu.onnx --dim batch=2 --plan greedy:inputs=no,align=1024 -q -o far.pte
"$ETC" embed far.pte -q -o far.c
grep ALIGNMENT far.h
"$ETC" lower $data/mixed.onnx --dim batch=1 --external-weights mixed.ptd -o mixed.pte -q
t embed mixed.ptd -o weights.c
cat weights.h
# What cannot be.
"$ETC" lower --method a-b=$data/add.onnx --method A_b=$data/add.onnx -q -o same.pte
t embed same.pte -o no.c
"$ETC" lower --method $(printf '%0201d' 0)=$data/add.onnx -q -o long.pte
t embed long.pte -o no.c
t embed add.pte -o no.c --name 3x
t embed add.pte -o no.c --name int
t embed add.pte -o no.c --name ''
t embed add.pte -o no.c --section 'a"b'
t embed add.pte -o no.c --align 24
t embed add.pte -o no.c --align 8
t embed add.pte -o no.txt
t embed add.pte -o -
t embed add.pte -o .c
t embed add.pte
t embed -o no.c
t embed add.pte two.pte -o no.c
t embed add.pte -o no.c --header no.c
t embed add.pte -o no.c --header missing/no.h
t embed add.pte -o missing/no.c
t embed add.pte -o no.c --header add.pte
cp add.pte program.c
t embed program.c -o program.c
cmp add.pte program.c
mkdir folder.c folder
t embed add.pte -o folder.c
t embed add.pte -o no.c --header folder
t embed $data/add.onnx -o no.c
t embed missing.pte -o no.c
t embed $data/x23.npy -o no.c
t embed two.pte -o .
head -c 300 two.pte >short.pte
t embed short.pte -o no.c
cp add.pte wrong.ptd
t embed wrong.ptd -o no.c
ls
