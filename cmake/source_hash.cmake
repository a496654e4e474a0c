# cmake -D LIST=FILE -D OUT=FILE.h -P source_hash.cmake: the hash of the files that LIST names, as ETC_SOURCE_HASH.
file(READ "${LIST}" files)
set(hashes "")
foreach(file IN LISTS files)
  file(SHA256 "${file}" hash)
  string(APPEND hashes "${hash}")
endforeach()
string(SHA256 hash "${hashes}")
file(WRITE "${OUT}" "/* Of all sources of libetc. */\n#define ETC_SOURCE_HASH \"${hash}\"\n")
