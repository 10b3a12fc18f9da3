# One set of compiler flags for every target of this project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
# -g1: functions and lines, all that a stack trace or a profiler asks for; a quarter of the build time less than -g.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")

# Frame pointers: profilers, and our own doctor, walk the stack by them.
add_compile_options(-Wall -Wextra -Wshadow -fno-omit-frame-pointer)
add_link_options(-Wl,--as-needed)
# GCC 12 warns of overlapping copies inside its own std::string (its bug 105651).
add_compile_options($<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
if(MILLPOND_WERROR)
  add_compile_options(-Werror)
endif()

if(MILLPOND_CHECKS)
  add_compile_definitions(MILLPOND_CHECKS)
endif()

if(MILLPOND_SANITIZE STREQUAL "address")
  set(MILLPOND_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined)
elseif(MILLPOND_SANITIZE STREQUAL "thread")
  set(MILLPOND_SANITIZE_FLAGS -fsanitize=thread)
elseif(MILLPOND_SANITIZE)
  message(FATAL_ERROR "MILLPOND_SANITIZE is '${MILLPOND_SANITIZE}'; it may be address, thread or empty.")
endif()
if(MILLPOND_SANITIZE)
  add_compile_options(${MILLPOND_SANITIZE_FLAGS})
  add_link_options(${MILLPOND_SANITIZE_FLAGS})
endif()

if(MILLPOND_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "MILLPOND_FUZZ needs clang (libFuzzer): set CXX=clang++.")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(MILLPOND_CCACHE ccache HINTS "${PROJECT_SOURCE_DIR}/.deps/bin")
if(MILLPOND_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${MILLPOND_CCACHE}")
endif()
