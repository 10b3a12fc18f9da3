# Everything Millpond links that it did not write. Found in the system, in CMAKE_PREFIX_PATH, or in .deps, the prefix
# that `make setup` fills for a user who is not root.
if(EXISTS "${PROJECT_SOURCE_DIR}/.deps/usr/include")
  set(deps "${PROJECT_SOURCE_DIR}/.deps/usr")
  list(PREPEND CMAKE_PREFIX_PATH "${deps}")
  # Libraries in .deps need one another, and only the old kind of rpath is searched for the needs of a library.
  list(APPEND CMAKE_BUILD_RPATH "${deps}/lib/${CMAKE_LIBRARY_ARCHITECTURE}" "${deps}/lib")
  list(APPEND CMAKE_INSTALL_RPATH "${deps}/lib/${CMAKE_LIBRARY_ARCHITECTURE}" "${deps}/lib")
  add_link_options(-Wl,--disable-new-dtags)
  # Debian keeps jconfig.h and zconf.h in a folder of the architecture, where a compiler looks by itself only in /usr.
  if(EXISTS "${deps}/include/${CMAKE_LIBRARY_ARCHITECTURE}")
    include_directories(SYSTEM "${deps}/include/${CMAKE_LIBRARY_ARCHITECTURE}")
  endif()
endif()

if(MILLPOND_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()
include("${CMAKE_CURRENT_LIST_DIR}/MillpondPackages.cmake")
mp_need(CLI11 libcli11-dev) # CLI11::CLI11, of the program alone: who links the library does not need it

if(MILLPOND_TESTS)
  mp_need(Doctest doctest-dev)
  find_package(Python3 3.9 COMPONENTS Interpreter REQUIRED)
endif()
