# etc_c_string(RESULT TEXT): TEXT as a string of C, a line of the text on a line.
function(etc_c_string result text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n  \"" text "${text}")
  set(${result} "\n  \"${text}\"" PARENT_SCOPE)
endfunction()
