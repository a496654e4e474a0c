# etc_lower: a model as a part of a build. docs/guide/builds.md says how it is used.
#
#   etc_lower(NAME [MODEL m.onnx] [RECIPE r.yaml] [METHOD name=m.onnx...] [OUTPUT m.pte]
#             [BACKEND xnnpack[:KEY=VALUE,...]...] [DIM batch=1...] [QUANTIZE SCHEME] [CALIBRATE PATH]
#             [BUDGET b.yaml] [CACHE DIR] [OPTIONS --any=option...] [DEPENDS FILE...] [EMBED])
#
# NAME is a target, built by default; its property ETC_PROGRAM is the path of the program, NAME.pte in the current binary folder where
# OUTPUT says nothing else. It is made again when anything changes that it is made from: models, their external data, recipes and what
# they include, plug-ins, samples, etc itself. EMBED adds the library NAME_embed, also called NAME::array: the program as an array,
# and its header NAME.h. Relative paths begin in the current source folder, but for OUTPUT, which begins in the current binary
# folder, and those within OPTIONS, which are passed on as they are.

# The policies of this file are those of its functions; CMP0116 says what paths in depfiles begin in.
if(NOT CMAKE_VERSION VERSION_LESS 3.20)
  cmake_policy(VERSION 3.20)
endif()

# A relative path as others of CMake are looked up: in the source folder, or else in the binary folder.
function(_etc_path variable path)
  cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE source)
  cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" OUTPUT_VARIABLE binary)
  if(NOT EXISTS "${source}")
    get_source_file_property(generated "${binary}" GENERATED)
    if(generated OR EXISTS "${binary}")
      set(source "${binary}")
    endif()
  endif()
  set(${variable} "${source}" PARENT_SCOPE)
endfunction()

# The same of a file that must be there, unless the build makes it.
function(_etc_input variable name what path)
  _etc_path(file "${path}")
  get_source_file_property(generated "${file}" GENERATED)
  cmake_path(IS_PREFIX CMAKE_BINARY_DIR "${file}" NORMALIZE built)
  if(NOT EXISTS "${file}" AND NOT generated AND NOT built)
    message(FATAL_ERROR "etc_lower(${name}): there is no ${what} '${file}'")
  endif()
  set(${variable} "${file}" PARENT_SCOPE)
endfunction()

function(_etc_check_name name embed)
  if(NOT name MATCHES "^[A-Za-z0-9_.+-]+$")
    message(FATAL_ERROR "etc_lower: '${name}' cannot be the name of a target: use letters, digits and _ . + -")
  endif()
  if(embed AND NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "etc_lower(${name}): with EMBED the name is that of an array in C: use letters, digits and _")
  endif()
  foreach(target "${name}" "${name}_embed")
    if(TARGET "${target}" AND (embed OR target STREQUAL name))
      message(FATAL_ERROR "etc_lower(${name}): there is a target '${target}' already")
    endif()
  endforeach()
endfunction()

# NAME_embed: what `etc embed` makes of the program, in assembler where the project has it, which takes no time to compile.
function(_etc_embed name program)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("ASM" IN_LIST languages)
    set(suffix S)
  elseif("C" IN_LIST languages)
    set(suffix c)
  elseif("CXX" IN_LIST languages)
    set(suffix cpp)
  else()
    message(FATAL_ERROR "etc_lower(${name}): EMBED makes a library: add C, CXX or ASM to the LANGUAGES of project()")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}_embed")
  set(source "${folder}/${name}.${suffix}")
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(
    OUTPUT "${source}" "${folder}/${name}.h"
    COMMAND etc::command embed "${program}" -o "${source}" --header "${folder}/${name}.h" --name "${name}" -q
    DEPENDS "${program}" "$<TARGET_FILE:etc::command>"
    COMMENT "Embedding ${name}"
    VERBATIM)
  add_library(${name}_embed STATIC "${source}" "${folder}/${name}.h")
  add_library(${name}::array ALIAS ${name}_embed)
  target_include_directories(${name}_embed PUBLIC "${folder}")
  add_dependencies(${name}_embed ${name})
endfunction()

function(etc_lower name)
  if(CMAKE_VERSION VERSION_LESS 3.20)
    message(FATAL_ERROR "etc_lower needs CMake 3.20, this is ${CMAKE_VERSION}")
  endif()
  set(single MODEL RECIPE OUTPUT CACHE QUANTIZE CALIBRATE BUDGET)
  cmake_parse_arguments(PARSE_ARGV 1 arg "EMBED" "${single}" "METHOD;BACKEND;DIM;OPTIONS;DEPENDS")
  _etc_check_name("${name}" "${arg_EMBED}")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "etc_lower(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(DEFINED arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "etc_lower(${name}): ${arg_KEYWORDS_MISSING_VALUES} without a value")
  endif()
  if(NOT DEFINED arg_MODEL AND NOT DEFINED arg_RECIPE AND NOT DEFINED arg_METHOD)
    message(FATAL_ERROR "etc_lower(${name}): say what to lower: MODEL, METHOD or RECIPE")
  endif()

  set(options "")
  set(inputs ${arg_DEPENDS})
  foreach(input MODEL RECIPE BUDGET CALIBRATE)
    if(DEFINED arg_${input})
      string(TOLOWER ${input} what)
      _etc_input(path "${name}" ${what} "${arg_${input}}")
      list(APPEND inputs "${path}")
      if(NOT input STREQUAL MODEL) # which is the argument
        list(APPEND options --${what})
      endif()
      list(APPEND options "${path}")
    endif()
  endforeach()
  foreach(method IN LISTS arg_METHOD)
    if(NOT method MATCHES "^([^=]+)=(.+)$")
      message(FATAL_ERROR "etc_lower(${name}): METHOD '${method}' is no NAME=MODEL")
    endif()
    set(method "${CMAKE_MATCH_1}")
    _etc_input(path "${name}" model "${CMAKE_MATCH_2}")
    list(APPEND inputs "${path}")
    list(APPEND options --method "${method}=${path}")
  endforeach()
  foreach(dim IN LISTS arg_DIM) # which takes a misspelt keyword behind it as one more
    if(NOT dim MATCHES "=")
      message(FATAL_ERROR "etc_lower(${name}): DIM '${dim}' is no NAME=SIZE")
    endif()
  endforeach()
  if(DEFINED arg_CACHE)
    _etc_path(path "${arg_CACHE}")
    list(APPEND options --cache "${path}")
  endif()
  foreach(option BACKEND DIM QUANTIZE)
    string(TOLOWER ${option} long)
    foreach(value IN LISTS arg_${option})
      list(APPEND options --${long} "${value}")
    endforeach()
  endforeach()

  if(NOT DEFINED arg_OUTPUT)
    set(arg_OUTPUT "${name}.pte")
  endif()
  cmake_path(ABSOLUTE_PATH arg_OUTPUT BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" OUTPUT_VARIABLE program)
  cmake_path(GET program PARENT_PATH folder)
  file(MAKE_DIRECTORY "${folder}")
  # Generators of makefiles only ever add to what they have read of a depfile (CMake 3.25): after an input is gone, the program would
  # be made in every build. Without the file that they keep it in, they read the depfile anew.
  set(forget "")
  if(CMAKE_GENERATOR MATCHES "Makefiles")
    set(forget COMMAND "${CMAKE_COMMAND}" -E rm -f
        "${CMAKE_CURRENT_BINARY_DIR}${CMAKE_FILES_DIRECTORY}/${name}.dir/compiler_depend.internal")
  endif()
  add_custom_command(
    OUTPUT "${program}"
    ${forget}
    COMMAND etc::command lower ${options} ${arg_OPTIONS} -o "${program}" -MF "${program}.d"
    DEPFILE "${program}.d"
    DEPENDS ${inputs} "$<TARGET_FILE:etc::command>"
    COMMENT "Lowering ${name}"
    VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${name} ALL DEPENDS "${program}")
  set_target_properties(${name} PROPERTIES ETC_PROGRAM "${program}")
  if(arg_EMBED)
    _etc_embed("${name}" "${program}")
  endif()
endfunction()
