# ops/all.h from ops/list.inc: the header of every operator that the list names.
#   mp_operator_headers(list.inc all.h)                                      while configuring; again when the list changes
#   cmake -DLIST=list.inc -DHEADER=all.h -P MillpondOperators.cmake          by itself
function(mp_operator_headers list header)
  file(STRINGS "${list}" lines REGEX "^MP_(OPERATOR|FUSION|FLOW)\\(")
  list(SORT lines)
  set(text "// Every operator, for the tables of the backends. Made from ops/list.inc.\n#pragma once\n")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^.*, *([a-z0-9_]+)\\).*$" "\\1" name "${line}")
    string(APPEND text "#include \"ops/${name}.h\"\n")
  endforeach()
  file(CONFIGURE OUTPUT "${header}" CONTENT "${text}" @ONLY)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  mp_operator_headers("${LIST}" "${HEADER}")
endif()
