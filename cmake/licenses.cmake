# etc_licenses.inc: what `etc version --licenses` prints, a row {title, text} for etc and for each library whose code is in a binary. The texts
# are those that the libraries were installed with.
include(${CMAKE_CURRENT_LIST_DIR}/text.cmake)

function(etc_license_row title file)
  set(text "This machine had no ${file} when this binary was made.\n")
  if(EXISTS ${file})
    file(READ ${file} text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endif()
  etc_c_string(literal "${text}")
  set_property(GLOBAL APPEND_STRING PROPERTY etc_license_rows "{\"${title}\", ${literal}},\n")
endfunction()

# Where Debian has them.
set(doc /usr/share/doc)
etc_license_row("etc" ${PROJECT_SOURCE_DIR}/LICENSE)
etc_license_row("xxHash, compiled in" ${doc}/libxxhash-dev/copyright)
etc_license_row("protobuf-c, linked" ${doc}/libprotobuf-c-dev/copyright)
etc_license_row("libyaml, linked" ${doc}/libyaml-dev/copyright)
etc_license_row("zlib, linked" ${doc}/zlib1g-dev/copyright)
set_property(GLOBAL APPEND_STRING PROPERTY etc_license_rows "#ifdef ETC_STATIC_BINARY\n")
etc_license_row("GNU C library, linked" ${doc}/libc6-dev/copyright)
etc_license_row("GNU Lesser General Public License 2.1, of the GNU C library" /usr/share/common-licenses/LGPL-2.1)
set_property(GLOBAL APPEND_STRING PROPERTY etc_license_rows "#endif\n")
get_property(license_rows GLOBAL PROPERTY etc_license_rows)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/version/etc_licenses.inc CONTENT "@license_rows@" @ONLY)
