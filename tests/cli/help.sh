# The texts are made from schema/options.def.
t help
for command in lower run opt print inspect verify calibrate ops passes backends why explain version help; do t help $command; done
t lower --help
t --help
t --version
