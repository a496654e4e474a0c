# etc_revision.h: the commit that was configured and its date, for `etc version` and the manual. A commit after that changes nothing until CMake runs
# again. An archive made by git has both in revision.txt; any other copy without .git has neither.
file(READ ${CMAKE_CURRENT_LIST_DIR}/revision.txt revision)
string(STRIP "${revision}" revision)
if(revision MATCHES "^.Format" AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  find_package(Git QUIET)
  if(GIT_FOUND)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} log -1 "--format=%h %cs"
                    OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(NOT revision MATCHES "^([0-9a-f]+) ([0-9]+-[0-9]+-[0-9]+)$")
  string(TIMESTAMP today "%Y-%m-%d" UTC) # of SOURCE_DATE_EPOCH where that is set
  string(REGEX MATCH "^(.*) (.*)$" revision "unknown ${today}")
endif()
set(ETC_REVISION ${CMAKE_MATCH_1})
set(ETC_REVISION_DATE ${CMAKE_MATCH_2})
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/version/etc_revision.h CONTENT
"/* Which commit was configured. */
#define ETC_REVISION \"@ETC_REVISION@\"
#define ETC_REVISION_DATE \"@ETC_REVISION_DATE@\"
" @ONLY)
