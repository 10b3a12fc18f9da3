# LIBXSMM has no CMake package: libxsmm for the kernels, libxsmmnoblas so that it asks for no BLAS.
find_path(LIBXSMM_INCLUDE_DIR libxsmm.h)
find_library(LIBXSMM_LIBRARY xsmm)
find_library(LIBXSMM_NOBLAS_LIBRARY xsmmnoblas)
mark_as_advanced(LIBXSMM_INCLUDE_DIR LIBXSMM_LIBRARY LIBXSMM_NOBLAS_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LIBXSMM REQUIRED_VARS LIBXSMM_LIBRARY LIBXSMM_NOBLAS_LIBRARY LIBXSMM_INCLUDE_DIR)

if(LIBXSMM_FOUND AND NOT TARGET LIBXSMM::LIBXSMM)
  find_package(Threads QUIET REQUIRED)
  add_library(LIBXSMM::LIBXSMM INTERFACE IMPORTED)
  target_include_directories(LIBXSMM::LIBXSMM SYSTEM INTERFACE "${LIBXSMM_INCLUDE_DIR}")
  target_link_libraries(LIBXSMM::LIBXSMM INTERFACE "${LIBXSMM_LIBRARY}" "${LIBXSMM_NOBLAS_LIBRARY}" Threads::Threads
                                                   ${CMAKE_DL_LIBS} rt m)
endif()
