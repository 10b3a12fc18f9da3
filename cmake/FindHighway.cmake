# Highway by header and library: its own CMake package differs between distributions.
find_path(Highway_INCLUDE_DIR hwy/highway.h)
find_library(Highway_LIBRARY hwy)
mark_as_advanced(Highway_INCLUDE_DIR Highway_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Highway REQUIRED_VARS Highway_LIBRARY Highway_INCLUDE_DIR)

if(Highway_FOUND AND NOT TARGET hwy::hwy)
  add_library(hwy::hwy UNKNOWN IMPORTED)
  set_target_properties(
    hwy::hwy PROPERTIES IMPORTED_LOCATION "${Highway_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Highway_INCLUDE_DIR}"
                        INTERFACE_COMPILE_DEFINITIONS HWY_SHARED_DEFINE)
endif()
