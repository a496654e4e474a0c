# Run by cpack on the files of each package, before it is made: what Debian wants of packages and `cmake --install` does not do.
set(components command library development)
set(names ${CPACK_DEBIAN_COMMAND_PACKAGE_NAME} ${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} ${CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME})
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH where that is set

# The libraries, and what finds them, into the folder of their architecture.
function(move_libraries root)
  if(CPACK_ETC_LIBDIR STREQUAL CPACK_ETC_DEBIAN_LIBDIR OR NOT EXISTS ${root}/${CPACK_ETC_LIBDIR})
    return()
  endif()
  file(RENAME ${root}/${CPACK_ETC_LIBDIR} ${root}/moved)
  file(MAKE_DIRECTORY ${root}/lib)
  file(RENAME ${root}/moved ${root}/${CPACK_ETC_DEBIAN_LIBDIR})
  foreach(file pkgconfig/etc.pc pkgconfig/etc-plugin.pc cmake/etc/etcConfig.cmake)
    if(EXISTS ${root}/${CPACK_ETC_DEBIAN_LIBDIR}/${file})
      get_filename_component(name ${file} NAME)
      file(COPY_FILE ${CPACK_ETC_FINDERS}/${name} ${root}/${CPACK_ETC_DEBIAN_LIBDIR}/${file})
    endif()
  endforeach()
endfunction()

foreach(name component IN ZIP_LISTS names components)
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr)
  set(documents ${root}/share/doc/${name})
  move_libraries(${root})
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
