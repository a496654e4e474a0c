# cpack -G DEB: one package with the command, the library and its headers. What it depends on is found by dpkg-shlibdeps (packages dpkg-dev and
# file), from what the binaries are linked with.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME etc)
set(CPACK_PACKAGE_CONTACT "the etc authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "lowers ONNX models to ExecuTorch programs")
set(CPACK_PACKAGE_DESCRIPTION "etc compiles ONNX models to programs of the ExecuTorch runtime (.pte), ahead of time and without Python.
This package has the command, the library libetc with its headers, and the manual.")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS libopenblas0) # etc run is faster with it
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_SOURCE_GENERATOR "")
include(CPack)
