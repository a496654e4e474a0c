# The texts are made from schema/options.def.
t help
for command in lower run opt print inspect verify calibrate ops passes backends why explain completion version help; do t help $command; done
t lower --help
t --help
# The commit that was configured, and its date: from git, or unknown.
t --version | sed -E 's/\(([0-9a-f]+|unknown), [0-9]{4}-[0-9]{2}-[0-9]{2}\)/(COMMIT, DATE)/'
t completion
t completion csh
