# doctest is one header. Its own CMake package names /usr wherever it lies, which is wrong for a prefix.
find_path(Doctest_INCLUDE_DIR doctest/doctest.h)
mark_as_advanced(Doctest_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Doctest REQUIRED_VARS Doctest_INCLUDE_DIR)

if(Doctest_FOUND AND NOT TARGET doctest::doctest)
  add_library(doctest::doctest INTERFACE IMPORTED)
  target_include_directories(doctest::doctest SYSTEM INTERFACE "${Doctest_INCLUDE_DIR}")
endif()
