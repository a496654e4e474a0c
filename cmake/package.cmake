# cpack -G DEB: three packages. etc is the command, its manual and completions; libetc0 the shared library; libetc-dev what programs and plug-ins
# are built with. What they depend on is found by dpkg-shlibdeps (packages dpkg-dev and file), from what the binaries are linked with.
set(ETC_PACKAGE_CONTACT "the etc authors <nobody@etc.invalid>" CACHE STRING "maintainer of the packages that cpack makes: NAME <ADDRESS>")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME etc)
set(CPACK_PACKAGE_CONTACT "${ETC_PACKAGE_CONTACT}")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL command library development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_SOURCE_GENERATOR "")
# Compresses the manual, and writes what each package has in share/doc.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
set(CPACK_ETC_COPYRIGHT ${PROJECT_BINARY_DIR}/copyright)

# Debian has libraries in the folder of their architecture. GNUInstallDirs takes that one with the prefix /usr alone, and packages are made from builds
# with any prefix: the files are moved there.
set(CPACK_ETC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
set(CPACK_ETC_DEBIAN_LIBDIR ${CMAKE_INSTALL_LIBDIR})
set(CPACK_ETC_FINDERS ${PROJECT_BINARY_DIR}/debian)
if(CMAKE_LIBRARY_ARCHITECTURE)
  set(CPACK_ETC_DEBIAN_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()
etc_configure_finders(${CPACK_ETC_DEBIAN_LIBDIR} ${CPACK_ETC_FINDERS})

set(soname_package libetc${PROJECT_VERSION_MAJOR})
set(same "(= ${PROJECT_VERSION})")
set(intro "etc compiles ONNX models to programs of the ExecuTorch runtime (.pte),
ahead of time and without Python.")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME etc)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS libopenblas0) # etc run is faster with it
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "compiler of ONNX models to ExecuTorch programs
${intro}
This package has the command, its manual and completions for shells.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${soname_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS libopenblas0)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "compiler of ONNX models to ExecuTorch programs, library
${intro}
This package has the shared library, for programs that lower models themselves.")
# The trigger makes dpkg tell the dynamic linker of the library; shlibs makes packages that are linked with it depend on this one.
set(control ${PROJECT_BINARY_DIR}/debian)
file(WRITE ${control}/triggers "activate-noawait ldconfig\n")
file(WRITE ${control}/shlibs "libetc ${PROJECT_VERSION_MAJOR} ${soname_package} ${same}\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${control}/triggers;${control}/shlibs")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libetc-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# Those of the libraries are for static linking, and for pkg-config.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${soname_package} ${same}, libprotobuf-c-dev, libyaml-dev, zlib1g-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "etc ${same}") # etc_lower of CMake runs it
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "compiler of ONNX models to ExecuTorch programs, headers
${intro}
This package has the headers, the static library and the files for CMake and
pkg-config, for programs that use the library and for plug-ins of the command.")
include(CPack)
