# Golden tests: RUN lines in .etir and .test files, checked by FileCheck.
#
# %etc is the command under test. '%exits N COMMAND' runs COMMAND and demands exit status N exactly; 'not COMMAND' only
# demands a failure that is no crash. Every test has a folder of its own below the build folder (%t and %T).
import os

import lit.formats

here = os.path.dirname(os.path.abspath(__file__))
config.name = "etc"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".etir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = here
config.test_exec_root = lit_config.params["work"]
config.environment["PATH"] = os.pathsep.join([lit_config.params["tools"], os.environ.get("PATH", "/usr/bin:/bin")])
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["NO_COLOR"] = "1"
config.substitutions.append(("%etc", lit_config.params["etc"]))
config.substitutions.append(("%exits", "sh " + os.path.join(here, "lib", "exits.sh")))
