file(REMOVE_RECURSE "${SCRATCH}")
function(step what)
  message(STATUS "${what}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed:\n${text}")
  endif()
endfunction()

step("install" "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${SCRATCH}/prefix")
# The prefix may be moved: nothing in it may depend on where it was installed.
file(RENAME "${SCRATCH}/prefix" "${SCRATCH}/moved")
list(PREPEND PREFIX_PATH "${SCRATCH}/moved")
step("configure a program that uses it" "${CMAKE_COMMAND}" -G Ninja -S "${CONSUMER}" -B "${SCRATCH}/consumer"
     "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}" "-DCMAKE_CXX_COMPILER=${CXX}")
step("build that program" "${CMAKE_COMMAND}" --build "${SCRATCH}/consumer")
step("run that program" "${SCRATCH}/consumer/consumer")
