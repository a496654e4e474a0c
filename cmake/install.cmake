# make install: the command (component `command`), libetc as programs run with it (`library`) and as they are built with it (`development`):
# the command, libetc (shared and static), the public headers, and what find_package(etc) and pkg-config read.
if(ETC_STATIC)
  install(TARGETS etc-static RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
else()
  install(TARGETS etc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
endif()
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development) # of what follows
install(TARGETS etc_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS etc_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/etc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# What a program linked with libetc.a needs besides, by the names that linkers and pkg-config know.
set(ETC_STATIC_LIBRARIES protobuf-c yaml z pthread m ${CMAKE_DL_LIBS})
set(ETC_PC_REQUIRES "libprotobuf-c yaml-0.1 zlib")

# Writes into a folder what pkg-config and find_package read, for libraries in <prefix>/LIBDIR.
function(etc_configure_finders CMAKE_INSTALL_LIBDIR folder)
  file(RELATIVE_PATH ETC_CONFIG_TO_PREFIX ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/cmake/etc ${CMAKE_INSTALL_PREFIX})
  file(RELATIVE_PATH ETC_PC_TO_PREFIX ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  foreach(file etc.pc etc-plugin.pc etcConfig.cmake)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/${file}.in ${folder}/${file} @ONLY)
  endforeach()
endfunction()

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/etc)
etc_configure_finders(${CMAKE_INSTALL_LIBDIR} ${PROJECT_BINARY_DIR})
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/etcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/etc.pc ${PROJECT_BINARY_DIR}/etc-plugin.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_BINARY_DIR}/etcConfig.cmake ${PROJECT_BINARY_DIR}/etcConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/etcLower.cmake
        DESTINATION ${config_folder})

# What plug-ins are compiled with: the headers of the graph and the tables, below include/etc/internal.
set(internal_folder ${CMAKE_INSTALL_INCLUDEDIR}/etc/internal)
install(FILES ${PROJECT_SOURCE_DIR}/src/pipeline/plugin.h ${PROJECT_BINARY_DIR}/src/plugin/etc/plugin_abi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/etc)
foreach(layer support ir ops quant)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/${layer} DESTINATION ${internal_folder} FILES_MATCHING PATTERN "*.h")
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/src/onnx/express.h ${PROJECT_SOURCE_DIR}/src/onnx/translate.h ${PROJECT_SOURCE_DIR}/src/onnx/import.h
              ${PROJECT_SOURCE_DIR}/src/onnx/translators.def
        DESTINATION ${internal_folder}/onnx)
install(FILES ${PROJECT_SOURCE_DIR}/passes/pass.h ${PROJECT_SOURCE_DIR}/passes/passes.def DESTINATION ${internal_folder}/passes)
install(FILES ${PROJECT_SOURCE_DIR}/passes/executorch/planner.h ${PROJECT_SOURCE_DIR}/passes/executorch/liveness.h
        DESTINATION ${internal_folder}/passes/executorch)
install(FILES ${PROJECT_SOURCE_DIR}/backends/backend.h ${PROJECT_SOURCE_DIR}/backends/selection.h ${PROJECT_SOURCE_DIR}/backends/backends.def
        DESTINATION ${internal_folder}/backends)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/schema/ DESTINATION ${internal_folder} FILES_MATCHING PATTERN "*.def")
install(FILES ${PROJECT_BINARY_DIR}/src/proto/op_functions.inc DESTINATION ${internal_folder}) # which ops/ops.h includes
unset(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME)
