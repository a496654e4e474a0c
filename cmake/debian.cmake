# Run by cpack on the files of each package, before it is made: what Debian wants of packages and `cmake --install` does not do.
set(components command library development)
set(names ${CPACK_DEBIAN_COMMAND_PACKAGE_NAME} ${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} ${CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME})
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH where that is set
foreach(name component IN ZIP_LISTS names components)
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr)
  set(documents ${root}/share/doc/${name})
  file(MAKE_DIRECTORY ${documents})
  file(COPY_FILE ${CPACK_ETC_COPYRIGHT} ${documents}/copyright)
  file(WRITE ${documents}/changelog
       "etc (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n  * What has changed is in CHANGELOG.md of the sources.\n\n"
       " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  file(GLOB plain ${documents}/changelog ${root}/share/man/*/*)
  foreach(file IN LISTS plain)
    execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endforeach()
